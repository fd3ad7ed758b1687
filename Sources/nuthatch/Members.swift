import ArgumentParser
import Client

/// The command `nuthatch members` with its subcommands.
struct Members: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the members of the cluster, forget some, open or recover one.",
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
        abstract: "Show who is in the cluster, as the node believes.",
        discussion: """
            One line for each member: its id, with a star if it is the node that is asked; its \
            state; whether it is counted, so that majorities and receipts wait for it; whether \
            there is a connection with it; how long ago it last said what it has; its share of \
            the keys; and where its peers reach it. A member that is counted and was not seen \
            since the node started is unknown.

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
        abstract: "Count members no longer that will not come back.",
        discussion: """
            Receipts wait no longer for them, and majorities are of the others. Say it only of \
            nodes that do not run: one that answered a minute ago may still be refused. The \
            others agree on it a moment after the command has ended; `nuthatch members` shows when \
            they have.

            Where the fence is closed because half are gone, say all of them at once: those that \
            are left need no vote of theirs. It is refused where those may not know every purge; \
            then `nuthatch members recover` has the count begin anew.

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
            throw ValidationError("'\(member)' is no id of a member: 32 hexadecimal digits")
        }
    }

    func run() throws { try connection.commands.forget(members).exit() }
}

/// The command `nuthatch members bootstrap`.
struct MembersBootstrap: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bootstrap",
        abstract: "Open a cluster with a node that has found none.",
        discussion: """
            A node with --join that reaches nobody waits, because others may have a cluster with \
            purges that it does not know; `nuthatch status` says what is missing. Say this only if \
            no other node has one, and to one node alone: two clusters that were opened apart do \
            not become one by themselves.

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
        abstract: "Begin the count anew with a node that stays fenced.",
        discussion: """
            For a cluster that cannot agree any more on who is counted: more than half of its \
            members are gone for good, two clusters that were opened apart have met, or the log \
            says that invalidations contradict each other. The node that is asked is the only one \
            counted at first; every node that reaches it follows it and is counted again. What any \
            of them holds is asked about at its origin once, so that no purge is lost, whoever had \
            it. A node that is proven current refuses.

            Say it to one node. Nodes that do not reach it must not run: they would go on with the \
            count of before.

            Example:
              nuthatch members recover --yes --node 10.0.0.7:8081

            \(NodeConnectionHelp.exitStatusHelp())
            """)

    @Flag(help: "Do not ask before.")
    var yes = false

    @OptionGroup
    var connection: NodeConnectionOptions

    func run() throws { try connection.commands.recover(isSure: yes).exit() }
}
