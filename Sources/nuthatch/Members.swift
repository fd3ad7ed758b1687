import ArgumentParser
import Client

struct Members: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the members of the cluster, forget one, or open a cluster.",
        discussion: """
            \(CallHelp.whom)

            Examples:
              nuthatch members
              nuthatch members --json --node 10.0.0.7:8081
              nuthatch members forget 0123456789abcdef0123456789abcdef
              nuthatch members bootstrap

            \(CallHelp.status())
            """,
        subcommands: [MembersList.self, MembersForget.self, MembersBootstrap.self],
        defaultSubcommand: MembersList.self)
}

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

            \(CallHelp.status())
            """)

    @OptionGroup
    var call: CallOptions

    func run() throws { try call.commands.members().exit() }
}

struct MembersForget: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Count a member no longer that will not come back.",
        discussion: """
            Receipts wait no longer for it, and majorities are of the others. Say it only of a \
            node that does not run: one that answered a minute ago may still be refused. The \
            others agree on it a moment \
            after the command has ended; `nuthatch members` shows when they have.

            Example:
              nuthatch members forget 0123456789abcdef0123456789abcdef

            \(CallHelp.status())
            """)

    @Argument(help: ArgumentHelp("The member's id, 32 hexadecimal digits.", valueName: "id"))
    var member: String

    @OptionGroup
    var call: CallOptions

    func validate() throws {
        guard Commands.isMember(member) else {
            throw ValidationError("'\(member)' is no id of a member: 32 hexadecimal digits")
        }
    }

    func run() throws { try call.commands.forget(member).exit() }
}

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

            \(CallHelp.status())
            """)

    @OptionGroup
    var call: CallOptions

    func run() throws { try call.commands.bootstrap().exit() }
}
