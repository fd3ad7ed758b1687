import ArgumentParser
import Node
import NodeConfiguration

/// The command `nuthatch serve`, which runs a node.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve images until SIGTERM or SIGINT.",
        discussion: """
            A flag beats its environment variable, which beats the key of the same name in the \
            file that --config names, which beats the default. The blocks sites and images of the \
            file have keys without flags: nuthatch explain sites, and explain images, print them.

            SIGHUP reads the file again: all settings that a running node can change change at \
            once, or none does when anything is wrong. SIGTERM and SIGINT end what is under way \
            within --drain-timeout; a second one ends at once.

            Examples:
              nuthatch serve --allow-private-origin 127.0.0.0/8
              nuthatch serve --cache-dir /var/cache/nuthatch --disk-limit 50GiB
              nuthatch serve --listen 0.0.0.0:8080 --allow-origin '*.example.com'
              nuthatch serve --config /etc/nuthatch/nuthatch.yaml

            Exit status: 0 when everything under way was ended, 1 when something was broken off \
            or a port could not be opened, 64 for a command line that cannot be read, 78 for \
            settings that are refused.
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
        abstract: "Check the settings that serve would take, and change nothing.",
        discussion: """
            Takes the flags, the environment and the file of serve. Prints each setting that \
            something gives, with its source, in the form of a file of settings; warnings and \
            faults, all of them, go to standard error.

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
