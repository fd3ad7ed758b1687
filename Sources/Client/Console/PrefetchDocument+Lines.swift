package import Admin

/// How far a prefetch has come, for people.
extension PrefetchDocument {
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

    /// What came of it, and what could not be fetched.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var first = TextLine(state.rawValue, style)
        first.append(
            "  \(NumberFormat.plural(UInt64(clamping: urlsTotal), "URL")): "
                + "\(NumberFormat.count(urlsFetched)) fetched, "
                + "\(NumberFormat.count(urlsCached)) held already"
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

    private var style: TextStyle {
        switch state {
        case .reading, .running: .plain
        case .done: urlsFailed == 0 ? .good : .warning
        case .cancelled, .failed: .bad
        }
    }
}

extension PrefetchRequest {
    /// `urls` in as many parts as there have to be, so that each fits into one request.
    package static func batches(_ urls: [String]) -> [[String]] {
        var batches: [[String]] = []
        var bytes = 0
        for url in urls {
            // Quotation marks and a comma; escapes may take six bytes for one.
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
