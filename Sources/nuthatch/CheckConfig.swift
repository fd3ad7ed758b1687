import ArgumentParser
import Node

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
