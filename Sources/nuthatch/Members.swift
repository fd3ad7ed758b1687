import ArgumentParser
import Foundation
import Node

struct Members: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the members of the cluster, or forget one.",
        discussion: """
            Asks the node of this machine or container on its admin port. Takes the flags, the \
            environment and the file of serve, of which only admin-listen matters.

            Examples:
              nuthatch members
              nuthatch members --json --admin-listen 127.0.0.1:8091
              nuthatch members forget 0123456789abcdef0123456789abcdef

            Exit status: 0 if it was done, 1 if the node refused, 64 for a command line that \
            cannot be read, 69 if no node answered, 78 if the settings do not say where one is.
            """,
        subcommands: [MembersList.self, MembersForget.self],
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
            """)

    @Flag(help: "Print the answer of the admin port as it is.")
    var json = false

    @OptionGroup
    var call: CallOptions

    func run() throws {
        try call.end(
            OperatorCall.members(call.settings.sources, timeout: call.limit, asJSON: json))
    }
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
            """)

    @Argument(help: ArgumentHelp("The member's id, 32 hexadecimal digits.", valueName: "id"))
    var member: String

    @OptionGroup
    var call: CallOptions

    func validate() throws {
        guard OperatorCall.isMember(member) else {
            throw ValidationError("'\(member)' is no id of a member: 32 hexadecimal digits")
        }
    }

    func run() throws {
        try call.end(
            OperatorCall.forget(member, call.settings.sources, timeout: call.limit))
    }
}

/// What every command takes that tells a running node something.
struct CallOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Time for the whole of it. Units: ms, s, m, h, d. Default: 3s.", valueName: "duration"))
    var timeout: String?

    @OptionGroup
    var settings: SettingOptions

    var limit: String { timeout ?? "3s" }

    /// Prints what came of a call.
    ///
    /// - Throws: the exit code, unless it is done.
    func end(_ call: OperatorCall) throws {
        switch call.outcome {
        case .done: return print(call.text)
        case .refused, .unanswered, .misconfigured: complain(call.text)
        }
        throw ExitCode(
            call.outcome == .refused
                ? 1 : call.outcome == .unanswered ? EX_UNAVAILABLE : EX_CONFIG)
    }
}
