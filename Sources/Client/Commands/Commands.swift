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

    /// Runs `work`; an error is printed, and its outcome returned.
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
            let reply = try options.client().send(question, as: type)
            printResult(lines(reply.document), reply.response)
            return .succeeded
        }
    }

    /// Sends an order, and prints the response as sent or, for people, `words`.
    func order(_ question: NodeRequest, _ words: String) -> CommandOutcome {
        run { () throws(CommandError) in
            printResult([TextLine(words)], try options.client().send(question))
            return .succeeded
        }
    }

    /// Prints a response as sent or, for people, `lines`.
    func printResult(_ lines: @autoclosure () -> [TextLine], _ response: NodeResponse) {
        if options.isJSON {
            console.print(String(decoding: response.body, as: UTF8.self))
        } else {
            console.print(lines())
        }
    }

    /// Repeats a request until `isDone` is true of its document or `deadline` is near.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - client: the client that sends it.
    ///   - first: the reply so far.
    ///   - deadline: the time when the last reply is returned, whatever it is.
    ///   - isDone: true if there is nothing more to wait for.
    ///   - progress: returns the line of progress of at most that many columns.
    /// - Returns: the last reply.
    /// - Throws: the error of a request.
    func poll<Document: Decodable>(
        _ request: NodeRequest, _ client: NodeClient, after first: Reply<Document>,
        until deadline: Instant, isDone: (Document) -> Bool, progress: (Document, Int) -> TextLine
    ) throws(CommandError) -> Reply<Document> {
        var last = first
        var pause = Interval.milliseconds(20)
        while !isDone(last.document) {
            let now = BootClock.now()
            guard now < deadline else { break }
            console.showProgress { progress(last.document, $0) }
            BootClock.pause(min(pause, deadline - now))
            pause = min(.milliseconds(250), pause + pause)
            last = try client.send(request, as: Document.self)
        }
        return last
    }

    /// Asks on the terminal for confirmation of an irreversible operation.
    ///
    /// - Parameters:
    ///   - question: the question.
    ///   - what: the operation, for the error if no confirmation can be requested.
    /// - Returns: `nil` if it is confirmed; `refused` if not, and `usageError` without a terminal.
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
    /// It first explains the consequences and, unless `isSure`, asks for confirmation on the
    /// terminal.
    package func recover(isSure: Bool) -> CommandOutcome {
        run { () throws(CommandError) in
            let client = try options.client()
            let page = try client.send(
                NodeClient.request(.listMembers), decoding: DocumentList<MemberDocument>.self)
            console.printNotice(page.recoverySummary)
            if !isSure, let ending = confirm("Continue?", "recover") { return ending }
            let words = "this node has started a new voter set; others join when they reach it"
            printResult([TextLine(words)], try client.send(NodeClient.request(.recover)))
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
            return run { () throws(CommandError) in throw .notURL(url) }
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
