import ArgumentParser
import Client

/// The command `nuthatch members` with its subcommands.
struct Members: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show or forget members of the cluster; bootstrap or recover a cluster.",
        discussion: """
            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch members
              nuthatch members --json --node 10.0.0.7:8081
              nuthatch members forget 0123456789abcdef0123456789abcdef
              nuthatch members bootstrap
              nuthatch members recover

            \(NodeConnectionHelp.exitStatusHelp())
            """,
        subcommands: [
            MembersList.self, MembersForget.self, MembersBootstrap.self, MembersRecover.self,
        ],
        defaultSubcommand: MembersList.self)
}

/// The command `nuthatch members list`.
struct MembersList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the members of the cluster, as the node sees them.",
        discussion: """
            One line for each member: its id, with a star if it is the queried node; its state; \
            whether it is a voter, which majorities and receipts depend on; whether it is \
            connected; the time since it last reported its invalidations; its share of the keys; \
            and its address for peers. A voter that has not been seen since the node started is \
            unknown.

            Example:
              nuthatch members list --json

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.members().exit() }
}

/// The command `nuthatch members forget`.
struct MembersForget: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove members that will not return from the voter set.",
        discussion: """
            Receipts no longer wait for them, and majorities are computed without them. Use it \
            only for nodes that do not run: a node that responded a minute ago may still be \
            refused. The other members agree shortly after the command has ended; \
            `nuthatch members` shows when they have.

            If the fence is closed because half of the members are gone, name all of them at once: \
            the remaining members then need no votes from them. This is refused if the remaining \
            members may not know every purge; then use `nuthatch members recover`.

            Examples:
              nuthatch members forget 0123456789abcdef0123456789abcdef
              nuthatch members forget 0123456789abcdef0123456789abcdef \
            fedcba9876543210fedcba9876543210

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Argument(help: ArgumentHelp("A member's id, 32 hexadecimal digits.", valueName: "id"))
    var members: [String]

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        for member in members where !Commands.isMember(member) {
            throw ValidationError("'\(member)' is not a member id: 32 hexadecimal digits")
        }
    }

    func run() throws { try connection.commands.forget(members).exit() }
}

/// The command `nuthatch members bootstrap`.
struct MembersBootstrap: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bootstrap",
        abstract: "Form a cluster with a node that has found none.",
        discussion: """
            A node with --join that reaches no other node waits, because others may have a cluster \
            with purges that it does not know; `nuthatch status` shows what is missing. Use this \
            only if no other node has a cluster, and on one node only: two clusters that were \
            formed separately do not merge.

            Example:
              nuthatch members bootstrap --node 10.0.0.7:8081

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.bootstrap().exit() }
}

/// The command `nuthatch members recover`.
struct MembersRecover: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recover",
        abstract: "Start a new voter set with a node that stays fenced.",
        discussion: """
            For a cluster that can no longer agree on its voters: more than half of its members \
            are gone for good, two clusters that were formed separately have met, or the log says \
            that invalidations contradict each other. At first only the queried node is a voter; \
            every node that reaches it follows it and becomes a voter. Each stored entry is \
            revalidated once with its origin, so that no purge is lost. A node that is proven \
            current refuses.

            Use it on one node only. Nodes that do not reach it must not run: they would \
            continue with the previous voter set.

            Example:
              nuthatch members recover --yes --node 10.0.0.7:8081

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.recover(isSure: yes).exit() }
}
