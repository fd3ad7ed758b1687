import ArgumentParser
import Client

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
