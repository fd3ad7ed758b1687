import Admin
import Glibc
import Ground

/// The commands that ask running nodes.
///
/// Each prints what came of it: documents to standard output, everything else to standard error.
package struct Commands: Sendable {
    let options: CommandOptions
    let console: Console

    package init(_ options: CommandOptions) {
        self.options = options
        console = Console(environment: options.environment)
    }

    /// Does `work`, and says what went wrong.
    func attempt(
        _ work: () throws(CommandFault) -> CommandEnding
    ) -> CommandEnding {
        do throws(CommandFault) {
            return try work()
        } catch {
            console.complain(error.text)
            return error.ending
        }
    }

    /// Prints the answer to `question` as the node gave it, or the lines that `show` makes of its
    /// document.
    func show<Document: Decodable>(
        _ question: Question, as type: Document.Type, _ lines: (Document) -> [TextLine]
    ) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let client = try options.client()
            let answer = try client.ask(question)
            let document = try client.document(type, in: answer, to: question)
            if options.isJSON {
                console.print(String(decoding: answer.body, as: UTF8.self))
            } else {
                console.print(lines(document))
            }
            return .done
        }
    }

    /// Asks on the terminal whether something is to be done that cannot be taken back.
    ///
    /// - Returns: nil if it is, else how the command has ended.
    package func confirm(_ question: String, _ what: String) -> CommandEnding? {
        guard console.showsProgress, isatty(STDIN_FILENO) == 1 else {
            console.complain("\(what) needs --yes where nobody can be asked")
            return .misused
        }
        Console.write(Array("\(question) Type yes: ".utf8), to: STDERR_FILENO)
        guard readLine() == "yes" else {
            console.complain("nothing was done")
            return .refused
        }
        return nil
    }

    // MARK: Members

    /// Shows who is in the cluster, as the node believes.
    package func members() -> CommandEnding {
        show(NodeClient.question(.listMembers), as: MemberRow.Page.self) {
            $0.lines(columnsMax: console.columns)
        }
    }

    /// Has the node begin to count members no longer.
    package func forget(_ members: [String]) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let answer = try options.client().ask(
                NodeClient.question(.forgetMembers, [members.joined(separator: ",")]))
            console.print(
                options.isJSON
                    ? String(decoding: answer.body, as: UTF8.self)
                    : "forgetting \(members.joined(separator: " "))")
            return .done
        }
    }

    /// Has the node open a cluster.
    package func bootstrap() -> CommandEnding {
        attempt { () throws(CommandFault) in
            let answer = try options.client().ask(NodeClient.question(.bootstrap))
            console.print(
                options.isJSON
                    ? String(decoding: answer.body, as: UTF8.self)
                    : "this node is the cluster now; others follow it as soon as they reach it")
            return .done
        }
    }

    /// Has the node begin the count anew, in the place of every other, unless `isSure` and nobody
    /// says so on the terminal; what that comes to is said before.
    package func recover(isSure: Bool) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let client = try options.client()
            let question = NodeClient.question(.listMembers)
            let answer = try client.ask(question)
            let page = try client.document(MemberRow.Page.self, in: answer, to: question)
            console.remark(page.recovery)
            if !isSure, let ending = confirm("Go on?", "recover") { return ending }
            let done = try client.ask(NodeClient.question(.recover))
            console.print(
                options.isJSON
                    ? String(decoding: done.body, as: UTF8.self)
                    : "the count begins anew with this node; others follow as they reach it")
            return .done
        }
    }

    /// True if a member may be called so.
    package static func isMember(_ text: String) -> Bool { NodeID(text) != nil }
}
