import ArgumentParser
import Client
import NodeConfiguration

/// The command `nuthatch status`.
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show how things stand with one node or several.",
        discussion: """
            Health, what memory and disk hold, the hit ratio, what origins gave, the cluster, and \
            purges that somebody has not confirmed; of several nodes a table. They are asked at \
            the same time.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch status
              nuthatch status --node 10.0.0.7 --node 10.0.0.8 --node 10.0.0.9
              nuthatch status --json | jq .statistics.requests

            \(NodeConnectionHelp.exitStatusHelp()) Of several nodes all have to answer.
            """)

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.status().exit() }
}

/// The command `nuthatch inspect`, which shows the entries of a URL.
struct Inspect: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a node holds under a URL, and what it would do with it.",
        discussion: """
            Each stored variant with its tier, age and freshness, what a client would get now and \
            why, and which nodes own it. Neither the origin nor another node is asked.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch inspect https://images.example.com/photo.jpg
              nuthatch inspect --head https://www.example.com/

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Argument(help: "The client's URL, or the origin's.")
    var url: String

    @Flag(help: "Show the stored heads, too.")
    var head = false

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.inspect(url, withHeads: head).exit() }
}

/// The command `nuthatch health`, which checks the readiness of this machine's node.
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
