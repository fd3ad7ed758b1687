import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry

/// The commands that send requests to running nodes.
///
/// Each prints its result: documents to standard output, everything else to standard error.
package struct Commands: Sendable {
    /// The nodes and options.
    let options: CommandOptions
    /// The output.
    let console: Console

    /// Creates the commands for these options.
    package init(_ options: CommandOptions) {
        self.options = options
        console = Console(environment: options.environment)
    }

    /// Runs `work` and prints its error.
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

    /// Sends a request, and prints the response as sent or, for people, the lines that `show` makes
    /// of its document.
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

    /// Sends an order, and prints the response as sent or, for people, `words`.
    func order(_ question: NodeRequest, _ words: String) -> CommandOutcome {
        run { () throws(CommandError) in
            printResult(words, try options.client().send(question))
            return .succeeded
        }
    }

    /// Prints a response as sent or, for people, `words`.
    func printResult(_ words: String, _ response: NodeResponse) {
        console.print(options.isJSON ? String(decoding: response.body, as: UTF8.self) : words)
    }

    /// Asks on the terminal for confirmation of an irreversible operation.
    ///
    /// - Returns: `nil` if it is confirmed; otherwise the outcome of the command.
    package func confirm(_ question: String, _ what: String) -> CommandOutcome? {
        guard console.showsProgress, isatty(STDIN_FILENO) == 1 else {
            console.printError("\(what) needs --yes where no confirmation can be requested")
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

    /// Shows the members of the cluster as the node sees them.
    package func members() -> CommandOutcome {
        show(NodeClient.request(.listMembers), as: DocumentList<MemberDocument>.self) {
            $0.lines(columnsMax: console.columns)
        }
    }

    /// Orders the node to remove members from the voter set.
    package func forget(_ members: [String]) -> CommandOutcome {
        order(
            NodeClient.request(.forgetMembers, [members.joined(separator: ",")]),
            "forgetting \(members.joined(separator: " "))")
    }

    /// Orders the node to form a new cluster.
    package func bootstrap() -> CommandOutcome {
        order(
            NodeClient.request(.bootstrap),
            "this node has formed a new cluster; others join it when they reach it")
    }

    /// Orders the node to begin a new voter set with itself as the only member.
    ///
    /// Unless `isSure`, it first explains the consequences and asks for confirmation on the
    /// terminal.
    package func recover(isSure: Bool) -> CommandOutcome {
        run { () throws(CommandError) in
            let client = try options.client()
            let question = NodeClient.request(.listMembers)
            let response = try client.send(question)
            let page = try client.document(
                DocumentList<MemberDocument>.self, in: response, to: question)
            console.printNotice(page.recoverySummary)
            if !isSure, let ending = confirm("Continue?", "recover") { return ending }
            printResult(
                "this node has started a new voter set; others join when they reach it",
                try client.send(NodeClient.request(.recover)))
            return .succeeded
        }
    }

    /// Returns true if `text` is a valid node id.
    package static func isMember(_ text: String) -> Bool { NodeID(text) != nil }
}

extension Commands {
    /// Shows the entries that the node stores under a URL, optionally with their stored heads; the
    /// outcome is `refused` if there are none.
    package func inspect(_ url: String, withHeads: Bool) -> CommandOutcome {
        guard AbsoluteURL(Array(url.utf8)) != nil else {
            return run { () throws(CommandError) in
                throw CommandError(
                    .usageError, "\(url.quoted()) is not a URL; allowed: http://… or https://…")
            }
        }
        return show(
            NodeClient.request(.getEntry, query: [("url", url)]), as: EntryDocument.self
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
