import ArgumentParser
import Node
import NodeConfiguration

/// The command `nuthatch serve`, which runs a node.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve images and sites until SIGTERM or SIGINT.",
        discussion: """
            A flag overrides its environment variable, which overrides the key of the same name in \
            the file named by --config, which overrides the default. The blocks sites and images \
            of the file have keys without flags: nuthatch explain sites and explain images print \
            them.

            SIGHUP rereads the file: all settings that do not need a restart are applied \
            together, or none if there is an error. After SIGTERM or SIGINT running requests may \
            finish within --drain-timeout; a second signal ends the node at once.

            Examples:
              nuthatch serve --allow-private-origin 127.0.0.0/8
              nuthatch serve --cache-dir /var/cache/nuthatch --disk-limit 50GiB
              nuthatch serve --listen 0.0.0.0:8080 --allow-origin '*.example.com'
              nuthatch serve --config /etc/nuthatch/nuthatch.yaml

            Exit status: 0 if all running requests finished, 1 if some were cut off or a port \
            could not be opened, 64 if the command line is invalid, 78 if the settings are invalid.
            """)

    @OptionGroup
    var settings: SettingOptions

    func run() async throws {
        ignoreHangups()
        let sources = settings.sources
        let ending = await Node.run(try settings.load(), from: sources)
        if ending != .drained { throw ExitCode.failure }
    }
}

/// The command `nuthatch check-config`, which checks and lists the settings.
struct CheckConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Check the settings that serve would use, and change nothing.",
        discussion: """
            Takes the flags, the environment and the file of serve. Prints each setting that is \
            set, with its source, in the format of a settings file; all warnings and errors go to \
            standard error.

            Example:
              nuthatch check-config --config /etc/nuthatch/nuthatch.yaml

            Exit status: 0 if a node would start with these settings, otherwise 78. Ports, \
            directories and origins are not tried.
            """)

    @OptionGroup
    var settings: SettingOptions

    func run() throws {
        let configuration = try settings.load()
        for warning in configuration.warnings + configuration.descriptorWarnings {
            printError("warning: \(warning)")
        }
        for line in configuration.listing { print(line) }
        printError("the settings are valid")
    }
}
