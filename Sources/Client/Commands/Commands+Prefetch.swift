package import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry

/// The arguments of a prefetch.
package struct PrefetchArguments: Sendable {
    /// The URLs to fetch.
    package var urls: [String] = []
    /// The files with a URL on each line; `-` is standard input.
    package var files: [String] = []
    /// The URL of a sitemap, in place of URLs; `nil` for none.
    package var sitemap: String?
    /// The Accept field of the fetches; `nil` for the node's default.
    package var accept: String?
    /// True if the command waits for the end of the prefetch.
    package var waitsUntilDone = true
    /// The maximum wait, as the operator wrote it; `nil` for no limit.
    package var timeout: String?

    /// Creates arguments without URLs.
    package init() {}

    /// Returns the bodies of the requests, each with as many URLs as one may have.
    fileprivate func requestBodies() throws(CommandError) -> [JSON] {
        let accept = accept.map { [JSON.Member("accept", .text($0))] } ?? []
        if let sitemap {
            return [.object([JSON.Member("sitemap", .text(sitemap))] + accept)]
        }
        var urls = urls
        for url in urls { try Self.check(url[...], in: "the command line") }
        for file in files { urls += try Self.urls(in: file) }
        guard !urls.isEmpty else {
            throw CommandError(
                .usageError, "no URL in \(files.joined(separator: ", "))")
        }
        return PrefetchRequest.batches(urls).map { batch in
            .object([JSON.Member("urls", JSON(batch))] + accept)
        }
    }

    /// Returns the URLs in a file, the first word of each line; empty lines and those that begin
    /// with `#` are skipped.
    private static func urls(in file: String) throws(CommandError) -> [String] {
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

    /// Checks that `url` is an absolute URL.
    private static func check(_ url: Substring, in place: String) throws(CommandError) {
        guard let parts = AbsoluteURL(Array(url.utf8)), !parts.host.isEmpty else {
            throw .notURL(String(url), in: place + ": ")
        }
    }

    /// Returns the contents of a file or of standard input.
    private static func bytes(of file: String) throws(CommandError) -> [UInt8] {
        let descriptor = file == "-" ? STDIN_FILENO : unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(file) }
        defer { if file != "-" { close(descriptor) } }
        guard let bytes = FileReader.readToEnd(of: descriptor) else { throw unreadable(file) }
        return bytes
    }

    /// Returns the error for a file that cannot be read.
    private static func unreadable(_ file: String) -> CommandError {
        let why = unsafe String(cString: strerror(errno))
        return CommandError(.usageError, "--file: \(file.quoted()) cannot be read: \(why)")
    }
}

extension Commands {
    /// Orders the node to prefetch, in several requests if there are many URLs, and shows the
    /// progress.
    ///
    /// The outcome is `refused` if a URL could not be fetched, and `incomplete` at the time limit.
    package func prefetch(_ order: PrefetchArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let limit = try order.timeout.map { text throws(CommandError) in
                try CommandOptions.duration(text, "--within")
            }
            let bodies = try order.requestBodies()
            let client = try options.client()
            let deadline = limit.map { BootClock.now() + $0 } ?? .distantFuture
            defer { console.clearProgress() }
            var ending = CommandOutcome.succeeded
            for (index, body) in bodies.enumerated() {
                let part = bodies.count > 1 ? " \(index + 1) of \(bodies.count)" : ""
                let question = NodeClient.request(.beginPrefetch, body: body)
                guard index == 0 || BootClock.now() < deadline else {
                    return unfinished(part, "the time limit was reached")
                }
                let begun = try start(
                    question, client, as: part,
                    until: order.waitsUntilDone ? deadline : .distantPast)
                guard var last = begun else {
                    return unfinished(part, "too many prefetches are running on the node")
                }
                if order.waitsUntilDone {
                    last = try poll(
                        NodeClient.request(.getPrefetch, [last.document.prefetch]), client,
                        after: last, until: deadline, isDone: \.state.isFinished
                    ) { $0.progress("prefetching" + part, columnsMax: $1) }
                }
                show(last)
                if let worse = last.document.outcome(isWaitedFor: order.waitsUntilDone) {
                    ending = worse
                }
            }
            return ending
        }
    }

    /// Prints why a part of the prefetch is not complete, and returns the outcome.
    private func unfinished(_ part: String, _ why: String) -> CommandOutcome {
        console.clearProgress()
        console.printError("not started\(part.isEmpty ? "" : " from\(part) on"): \(why)")
        return .incomplete
    }

    /// Starts a prefetch, waiting while the node runs as many as it allows; returns `nil` if it
    /// still does at `deadline`.
    private func start(
        _ question: NodeRequest, _ client: NodeClient, as part: String, until deadline: Instant
    ) throws(CommandError) -> Reply<PrefetchDocument>? {
        while true {
            let exchange = client.exchange(question)
            if case .success(let response) = exchange.outcome,
                response.problem.name == PrefetchRequest.tooManyProblem
            {
                guard BootClock.now() < deadline else { return nil }
                console.showProgress {
                    ProgressLine.line(
                        "waiting" + part, share: nil, note: "other prefetches run",
                        columnsMax: $0)
                }
                BootClock.pause(.milliseconds(500))
                continue
            }
            return try client.reply(PrefetchDocument.self, of: exchange)
        }
    }

    /// Prints the result of a prefetch.
    private func show(_ last: Reply<PrefetchDocument>) {
        console.clearProgress()
        if options.isJSON {
            console.print(last.response.jsonLine)
        } else {
            console.print(last.document.lines(columnsMax: console.columns))
        }
    }
}

extension PrefetchDocument {
    /// Returns the outcome of the command; `nil` for a success, which a prefetch in progress is too
    /// if it is not waited for.
    fileprivate func outcome(isWaitedFor: Bool) -> CommandOutcome? {
        switch state {
        case .failed, .cancelled: .refused
        case .reading, .running: isWaitedFor ? .incomplete : nil
        case .done: urlsFailed > 0 || sitemapsFailed > 0 ? .refused : nil
        }
    }
}

/// The progress and result of a prefetch for people.
extension PrefetchDocument {
    /// Returns the progress as one line of at most `columnsMax` columns; `what` names the
    /// operation.
    package func progress(_ what: String, columnsMax: Int) -> TextLine {
        guard state != .reading else {
            return ProgressLine.line(
                what, share: nil, note: "reading the sitemap", columnsMax: columnsMax)
        }
        var note =
            "\(NumberFormat.count(urlsDone)) of \(NumberFormat.count(urlsTotal)), "
            + NumberFormat.bytes(bodyBytes)
        if urlsFailed > 0 { note += ", \(NumberFormat.count(urlsFailed)) failed" }
        if urlsDone > 0, urlsDone < urlsTotal {
            let share = Double(urlsTotal) / Double(urlsDone) - 1
            let left = Double(elapsedMilliseconds) * share
            if left >= 1000 {
                note += ", \(NumberFormat.duration(milliseconds: Int64(min(1e15, left)))) left"
            }
        }
        let share = urlsTotal == 0 ? 1 : Double(urlsDone) / Double(urlsTotal)
        return ProgressLine.line(what, share: share, note: note, columnsMax: columnsMax)
    }

    /// Returns the result and the URLs that could not be fetched; `columnsMax` is `nil` for no
    /// limit.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var first = TextLine(state.rawValue, style)
        first.append(
            "  \(NumberFormat.plural(UInt64(clamping: urlsTotal), "URL")): "
                + "\(NumberFormat.count(urlsFetched)) fetched, "
                + "\(NumberFormat.count(urlsCached)) already cached"
        )
        if urlsFailed > 0 {
            first.append(", ")
            first.append("\(NumberFormat.count(urlsFailed)) failed", .bad)
        }
        first.append(
            "; \(NumberFormat.bytes(bodyBytes)) in "
                + NumberFormat.duration(milliseconds: elapsedMilliseconds)
        )
        if !state.isFinished { first += TextLine("  \(prefetch)", .faint) }
        var lines = [first]
        if !failures.isEmpty {
            var table = Table([.flexible("NOT FETCHED"), .left("WHY")])
            for fault in failures { table.append([TextLine(fault.url), TextLine(fault.reason)]) }
            lines += table.lines(columnsMax: columnsMax)
        }
        return lines
    }

    /// The style of the result.
    private var style: TextStyle {
        switch state {
        case .reading, .running: .plain
        case .done: urlsFailed == 0 ? .good : .warning
        case .cancelled, .failed: .bad
        }
    }
}

extension PrefetchRequest {
    /// Returns the URLs in as many parts as required for each to fit into one request.
    package static func batches(_ urls: [String]) -> [[String]] {
        var batches: [[String]] = []
        var bytes = 0
        for url in urls {
            // Quotation marks and a comma; escapes may need six bytes for one.
            let needed = JSON.text(url).compactText.utf8.count + 1
            let isFull =
                (batches.last?.count ?? 0) >= urlsMax || bytes + needed > bodyBytesMax - 1024
            if batches.isEmpty || isFull {
                batches.append([])
                bytes = 0
            }
            batches[batches.count - 1].append(url)
            bytes += needed
        }
        return batches
    }
}
