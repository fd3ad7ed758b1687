import ArgumentParser
import Client
import Node

struct Health: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the node of this machine or container whether it is ready.",
        discussion: """
            Takes the flags, the environment and the file of serve, of which only listen and \
            admin-listen matter. Asks for /readyz on the admin port, or if that is off on the \
            first address for clients.

            Examples:
              nuthatch health
              nuthatch health --timeout 1s --admin-listen 127.0.0.1:8091

            Exit status: 0 if the node is ready, otherwise 1.
            """)

    @Option(
        help: ArgumentHelp(
            "Time for the whole of it. Units: ms, s, m, h, d. Default: 3s.", valueName: "duration"))
    var timeout: String?

    @OptionGroup
    var settings: SettingOptions

    func run() throws {
        let check = HealthCheck.run(settings.sources.ownNode, timeout: timeout ?? "3s")
        guard check.isReady else {
            printError(check.line)
            throw ExitCode.failure
        }
        print(check.line)
    }
}
