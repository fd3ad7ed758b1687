import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry

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
    func run(
        _ work: () throws(CommandError) -> CommandOutcome
    ) -> CommandOutcome {
        do throws(CommandError) {
            return try work()
        } catch {
            console.printError(error.text)
            return error.outcome
        }
    }

    /// Prints the answer to `question` as the node gave it, or the lines that `show` makes of its
    /// document.
    func show<Document: Decodable>(
        _ question: NodeRequest, as type: Document.Type, _ lines: (Document) -> [TextLine]
    ) -> CommandOutcome {
        run { () throws(CommandError) in
            let client = try options.client()
            let response = try client.send(question)
            let document = try client.document(type, in: response, to: question)
            if options.isJSON {
                console.print(String(decoding: response.body, as: UTF8.self))
            } else {
                console.print(lines(document))
            }
            return .succeeded
        }
    }

    /// Asks on the terminal whether something is to be done that cannot be taken back.
    ///
    /// - Returns: nil if it is, else how the command has ended.
    package func confirm(_ question: String, _ what: String) -> CommandOutcome? {
        guard console.showsProgress, isatty(STDIN_FILENO) == 1 else {
            console.printError("\(what) needs --yes where nobody can be asked")
            return .usageError
        }
        Console.write(Array("\(question) Type yes: ".utf8), to: STDERR_FILENO)
        guard readLine() == "yes" else {
            console.printError("nothing was done")
            return .refused
        }
        return nil
    }

    // MARK: Members

    /// Shows who is in the cluster, as the node believes.
    package func members() -> CommandOutcome {
        show(NodeClient.request(.listMembers), as: MemberDocument.Page.self) {
            $0.lines(columnsMax: console.columns)
        }
    }

    /// Has the node begin to count members no longer.
    package func forget(_ members: [String]) -> CommandOutcome {
        run { () throws(CommandError) in
            let response = try options.client().send(
                NodeClient.request(.forgetMembers, [members.joined(separator: ",")]))
            console.print(
                options.isJSON
                    ? String(decoding: response.body, as: UTF8.self)
                    : "forgetting \(members.joined(separator: " "))")
            return .succeeded
        }
    }

    /// Has the node open a cluster.
    package func bootstrap() -> CommandOutcome {
        run { () throws(CommandError) in
            let response = try options.client().send(NodeClient.request(.bootstrap))
            console.print(
                options.isJSON
                    ? String(decoding: response.body, as: UTF8.self)
                    : "this node is the cluster now; others follow it as soon as they reach it")
            return .succeeded
        }
    }

    /// Has the node begin the count anew, in the place of every other, unless `isSure` and nobody
    /// says so on the terminal; what that comes to is said before.
    package func recover(isSure: Bool) -> CommandOutcome {
        run { () throws(CommandError) in
            let client = try options.client()
            let question = NodeClient.request(.listMembers)
            let response = try client.send(question)
            let page = try client.document(MemberDocument.Page.self, in: response, to: question)
            console.printNotice(page.recoverySummary)
            if !isSure, let ending = confirm("Go on?", "recover") { return ending }
            let done = try client.send(NodeClient.request(.recover))
            console.print(
                options.isJSON
                    ? String(decoding: done.body, as: UTF8.self)
                    : "the count begins anew with this node; others follow as they reach it")
            return .succeeded
        }
    }

    /// True if a member may be called so.
    package static func isMember(_ text: String) -> Bool { NodeID(text) != nil }
}

extension Commands {
    /// Shows what the node holds under a URL, with the stored heads if they are wanted; refused if
    /// it holds nothing.
    package func inspect(_ url: String, withHeads: Bool) -> CommandOutcome {
        guard AbsoluteURL(Array(url.utf8)) != nil else {
            return run { () throws(CommandError) in
                throw CommandError(
                    .usageError, "\(url.quoted()) is no URL; allowed: http://… or https://…")
            }
        }
        return show(
            NodeClient.request(.getEntry, query: [("url", url)]), as: EntryReport.self
        ) { report in
            var lines = report.lines(columnsMax: console.columns)
            guard withHeads else { return lines }
            for (index, variant) in report.variants.enumerated() {
                let which = report.variants.count > 1 ? " of variant \(index + 1)" : ""
                lines += [TextLine(), TextLine("stored head\(which)", .strong)]
                lines += variant.fieldLines
            }
            return lines
        }
    }
}
