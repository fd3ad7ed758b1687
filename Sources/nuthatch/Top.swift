import ArgumentParser
import Client

/// The command `nuthatch top`.
struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch nodes at work, on the terminal.",
        discussion: """
            What is wrong, the worst first; traffic, hit ratios, errors and latencies of each node \
            and of all together; the most requested images, and the latest purges. v shows \
            conditions with advice, origins, sites, members and certificates; q quits, ? shows \
            the other keys. If one node is named, members of its cluster on other hosts are \
            watched as well, provided they respond at the same port without a token: the token is \
            sent only to nodes that are named.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch top
              nuthatch top --node 10.0.0.7 --node 10.0.0.8 --interval 5s
              nuthatch top --once
              nuthatch top --json | jq -c '[.at, .statistics.requests.memory]'

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Option(
        help: ArgumentHelp(
            "How often to query the nodes, at least 100ms. Units: ms, s, m, h, d. Default: 1s.",
            valueName: "duration"))
    var interval: String?

    @Flag(
        help: """
            Print one screen without control codes, and exit; with --json one line for each node.
            """)
    var once = false

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws {
        var order = TopArguments()
        if let interval { order.interval = interval }
        order.isOnce = once
        try connection.commands.top(order).exit()
    }
}
