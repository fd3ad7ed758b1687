import ArgumentParser
import Client

/// The command `nuthatch purge`.
struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Purge URLs, prefixes, tags or everything on every node.",
        discussion: """
            Shows the receipt as members confirm, one by one. A purge that was issued reaches \
            every node, even if this command does not wait for it.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch purge https://images.example.com/photo.jpg
              nuthatch purge --prefix https://www.example.com/avatars --soft
              nuthatch purge --tag product-17 --id deploy-7 --within 30s
              nuthatch purge --everything --yes

            \(NodeConnectionHelp.exitStatusHelp("75 if a member has not confirmed in time, "
                + "or cannot be reached, "))
            """)

    @Argument(help: "URLs of clients or of origins, each with all its variants.")
    var urls: [String] = []

    @Option(
        help: ArgumentHelp(
            "A host, or a host and a path: all URLs below it. May be repeated.", valueName: "url"))
    var prefix: [String] = []

    @Option(
        help: ArgumentHelp(
            "All responses with this tag. May be repeated.", valueName: "tag"))
    var tag: [String] = []

    @Flag(help: "Everything. Asks for confirmation on the terminal.")
    var everything = false

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @Flag(help: "Make entries stale instead of removing them, so that they are revalidated.")
    var soft = false

    @Option(
        help: ArgumentHelp(
            "Id that makes a retry safe: a purge with an id is executed once.",
            valueName: "id"))
    var id: String?

    @Option(
        help: ArgumentHelp(
            "all: wait until every reachable member has confirmed. issued: until the purge is on "
                + "the node's disk, and sent. none: do not wait. Default: all.", valueName: "what"),
        completion: .list(PurgeWaitTarget.allCases.map(\.rawValue)))
    var wait: String?

    @Option(
        help: ArgumentHelp(
            "Maximum wait for --wait. Units: ms, s, m, h, d. Default: 10s.",
            valueName: "duration"))
    var within: String?

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        if urls.isEmpty, prefix.isEmpty, tag.isEmpty, !everything {
            throw ValidationError("nothing to purge: give URLs, --prefix, --tag or --everything")
        }
        if let wait, PurgeWaitTarget(rawValue: wait) == nil {
            throw ValidationError("--wait: '\(wait)' is not all, issued or none")
        }
    }

    func run() throws {
        let commands = connection.commands
        if everything, !yes {
            let question = "Purge everything, on every node of the cluster?"
            try commands.confirm(question, "--everything")?.exit()
        }
        var order = PurgeArguments()
        (order.urls, order.prefixes, order.tags) = (urls, prefix, tag)
        (order.isEverything, order.isSoft, order.id) = (everything, soft, id)
        order.wait = wait.flatMap(PurgeWaitTarget.init) ?? .all
        if let within { order.timeout = within }
        try commands.purge(order).exit()
    }
}
