import ArgumentParser
import Client
import NodeConfiguration

/// The command `nuthatch status`.
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the status of one node or several.",
        discussion: """
            First what is wrong, the worst first, with advice and the alert that would fire; then \
            memory, disk, hit ratio, responses by status class, errors by reason, and the \
            certificates that expire first; then origins, sites and members with their last \
            error. For several nodes a table. They are queried in parallel.

            --check prints the worst state in one line, for monitoring systems that run commands \
            as Nagios does.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch status
              nuthatch status --node 10.0.0.7 --node 10.0.0.8 --node 10.0.0.9
              nuthatch status --json | jq .statistics.requests
              nuthatch status --check --node 10.0.0.7

            \(NodeConnectionHelp.exitStatusHelp()) If several are named, all must respond. With \
            --check: 0 if ready, 1 for a warning, 2 if critical or without a response, 3 if the \
            state is unknown.
            """)

    @Flag(help: "Print the worst state in one line, and exit with its status.")
    var check = false

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.status(isCheck: check).exit() }
}

/// The command `nuthatch inspect`, which shows the entries of a URL.
struct Inspect: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the stored variants of a URL, and how the node would serve them.",
        discussion: """
            Each stored variant with its tier, age and freshness, how a client would be served now \
            and why, and the owners. No request goes to the origin or to another node.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch inspect https://images.example.com/photo.jpg
              nuthatch inspect --head https://www.example.com/

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Argument(help: "The URL of a client or of an origin.")
    var url: String

    @Flag(help: "Also show the stored heads.")
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
            Finds the node from listen and admin-listen, as in the flags, the environment and the \
            settings file of serve. Requests /readyz from the admin port, or if that is off from \
            the first address for clients.

            Examples:
              nuthatch health
              nuthatch health --timeout 1s --admin-listen 127.0.0.1:8091

            Exit status: 0 if the node is ready, otherwise 1.
            """)

    @Option(
        help: ArgumentHelp(
            "Time for the whole check. Units: ms, s, m, h, d. Default: 3s.", valueName: "duration"))
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
