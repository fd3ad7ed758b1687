import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry

/// What is to be fetched before clients ask for it.
package struct PrefetchOrder: Sendable {
    package var urls: [String] = []
    /// Files with a URL on each line; `-` is standard input.
    package var files: [String] = []
    /// In place of URLs.
    package var sitemap: String?
    /// Nil for what the node asks with.
    package var accept: String?
    package var waits = true
    /// For how long that is waited for, as the operator writes it; nil for as long as it takes.
    package var limit: String?

    package init() {}
}

extension Commands {
    /// Has the node fetch, and shows how far it is; refused if a URL could not be fetched.
    package func prefetch(_ order: PrefetchOrder) -> CommandEnding {
        attempt { () throws(CommandFault) in
            var limit: Interval?
            if let text = order.limit { limit = try CommandOptions.duration(text, "--within") }
            let bodies = try bodies(order)
            let client = try options.client()
            let deadline = limit.map { SystemClock.now() + $0 } ?? .distantFuture
            defer { console.endProgress() }
            var ending = CommandEnding.done
            for (index, body) in bodies.enumerated() {
                let part = bodies.count > 1 ? " \(index + 1) of \(bodies.count)" : ""
                let question = NodeClient.question(.beginPrefetch, body: body)
                guard index == 0 || SystemClock.now() < deadline else {
                    return unfinished(part, "its time is up")
                }
                let begun = try begin(
                    question, client, as: part, until: order.waits ? deadline : .distantPast)
                guard var last = begun else {
                    return unfinished(part, "as many run on the node as may")
                }
                if order.waits {
                    last = try follow(last, client, as: "prefetching" + part, until: deadline)
                }
                show(last)
                if let worse = last.document.ending(isWaitedFor: order.waits) { ending = worse }
            }
            return ending
        }
    }

    private func unfinished(_ part: String, _ why: String) -> CommandEnding {
        console.endProgress()
        console.complain("not begun\(part.isEmpty ? "" : " from\(part) on"): \(why)")
        return .unfinished
    }

    private typealias Standing = (answer: Answer, document: PrefetchDocument)

    /// Waits while as many prefetches run on the node as may; nil if they did until `deadline`.
    private func begin(
        _ question: Question, _ client: NodeClient, as part: String, until deadline: Instant
    ) throws(CommandFault) -> Standing? {
        while true {
            let exchange = client.begin(question)
            Exchange.advance([exchange])
            if case .success(let answer) = exchange.outcome,
                answer.problem.name == PrefetchRequest.tooManyProblem
            {
                guard SystemClock.now() < deadline else { return nil }
                console.show {
                    ProgressLine.line(
                        "waiting" + part, share: nil, note: "other prefetches run", columnsMax: $0)
                }
                SystemClock.pause(.milliseconds(500))
                continue
            }
            let answer = try client.answer(of: exchange)
            return (
                answer, try client.document(PrefetchDocument.self, in: answer, to: question)
            )
        }
    }

    private func follow(
        _ begun: Standing, _ client: NodeClient, as what: String, until deadline: Instant
    ) throws(CommandFault) -> Standing {
        var last = begun
        let question = NodeClient.question(.getPrefetch, [begun.document.prefetch])
        var pause = Interval.milliseconds(20)
        while !last.document.state.isOver, SystemClock.now() < deadline {
            console.show { last.document.progress(what, columnsMax: $0) }
            SystemClock.pause(pause)
            pause = min(.milliseconds(250), pause + pause)
            last.answer = try client.ask(question)
            last.document = try client.document(
                PrefetchDocument.self, in: last.answer, to: question)
        }
        return last
    }

    private func show(_ last: Standing) {
        console.endProgress()
        if options.isJSON {
            console.print(last.answer.jsonLine)
        } else {
            console.print(last.document.lines(columnsMax: console.columns))
        }
    }

    // MARK: What is fetched

    /// The body of each request: so many URLs as one may have.
    private func bodies(_ order: PrefetchOrder) throws(CommandFault) -> [JSON] {
        let accept = order.accept.map { [JSON.Member("accept", .text($0))] } ?? []
        if let sitemap = order.sitemap {
            return [.object([JSON.Member("sitemap", .text(sitemap))] + accept)]
        }
        var urls = order.urls
        for url in urls { try Self.check(url[...], in: "the command line") }
        for file in order.files { urls += try Self.urls(in: file) }
        guard !urls.isEmpty else {
            throw CommandFault(
                .misused, "there is no URL in \(order.files.joined(separator: ", "))")
        }
        return PrefetchRequest.batches(urls).map { batch in
            .object([JSON.Member("urls", JSON(batch))] + accept)
        }
    }

    private static func urls(in file: String) throws(CommandFault) -> [String] {
        let text = String(decoding: try bytes(of: file), as: UTF8.self)
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        var urls: [String] = []
        for (number, line) in zip(1..., lines) {
            let word = line.drop(while: \.isWhitespace).prefix { !$0.isWhitespace }
            guard !word.isEmpty, !word.hasPrefix("#") else { continue }
            try check(word, in: "\(file), line \(number)")
            urls.append(String(word))
        }
        return urls
    }

    private static func check(_ url: Substring, in place: String) throws(CommandFault) {
        guard let parts = AbsoluteURL(Array(url.utf8)), !parts.host.isEmpty else {
            throw CommandFault(
                .misused,
                "\(place): \(String(url).quoted()) is no URL; allowed: http://… or https://…")
        }
    }

    private static func bytes(of file: String) throws(CommandFault) -> [UInt8] {
        let descriptor = file == "-" ? STDIN_FILENO : unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(file) }
        defer { if file != "-" { close(descriptor) } }
        guard let bytes = FileBytes.all(of: descriptor) else { throw unreadable(file) }
        return bytes
    }

    private static func unreadable(_ file: String) -> CommandFault {
        let why = unsafe String(cString: strerror(errno))
        return CommandFault(.misused, "--file: \(file.quoted()) cannot be read: \(why)")
    }
}

extension PrefetchDocument {
    /// How the command ends, if not well.
    fileprivate func ending(isWaitedFor: Bool) -> CommandEnding? {
        switch state {
        case .failed, .cancelled: .refused
        case .reading, .running: isWaitedFor ? .unfinished : nil
        case .done: urlsFailed > 0 || sitemapsFailed > 0 ? .refused : nil
        }
    }
}
