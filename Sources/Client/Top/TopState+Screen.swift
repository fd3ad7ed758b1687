import Admin
package import Ground

/// The screen of `nuthatch top`.
extension TopState {
    /// What fills a terminal of so many columns and rows: as many lines, none wider.
    ///
    /// With `rows` nil as many lines as there is something to say, without the keys.
    package func render(columns: Int, rows: Int?, now: Instant) -> [TextLine] {
        var lines = headLines(columns, now)
        lines += nodeLines(columns, now)
        guard let rows else {
            return (lines + listLines(columns, room: 30)).map { $0.truncated(to: columns) }
        }
        // The keys have the last line, and a blank one before it if there is room.
        let room = rows - lines.count - 1
        if showsHelp {
            lines += [TextLine()] + Self.helpLines
        } else {
            lines += listLines(columns, room: room)
        }
        lines = Array(lines.prefix(max(0, rows - 1)))
        while lines.count < rows - 1 { lines.append(TextLine()) }
        if rows > 0 { lines.append(keyLine) }
        return lines.map { $0.truncated(to: columns) }
    }

    // MARK: The head

    private func headLines(_ columns: Int, _ now: Instant) -> [TextLine] {
        let title = TextLine("nuthatch top", .strong) + TextLine("  ") + membersLine
        let mode =
            isPaused
            ? TextLine("paused", .reversed)
            : TextLine(
                "every \(NumberFormat.duration(milliseconds: interval.milliseconds))", .faint)
        let gap = columns - title.columns - mode.columns
        let first =
            gap > 0 ? title + TextLine(String(repeating: " ", count: gap)) + mode : title
        return [first, fenceLine, TextLine()] + trafficLines(columns) + [TextLine()]
    }

    private var membersLine: TextLine {
        guard let report = referenceNode?.report else { return TextLine("nobody answers", .bad) }
        guard let cluster = report.cluster else { return TextLine("one node, in no cluster") }
        let present = report.members.filter { $0.state != "left" }
        var line = TextLine("cluster of \(present.count): ")
        for (index, state) in ["alive", "suspected", "dead", "unknown"].enumerated() {
            let count = present.count { $0.state == state }
            guard count > 0 || index == 0 else { continue }
            if index > 0 { line.append(", ") }
            line.append("\(count) \(state)", MemberDocument.style(ofState: state))
        }
        return line + TextLine(", \(cluster.voterCount) counted")
    }

    private var fenceLine: TextLine {
        let reports = nodes.compactMap { node in node.report.map { (node, $0) } }
        let fenced = reports.filter(\.1.isFenced)
        var line: TextLine
        if fenced.isEmpty {
            line = TextLine(reports.isEmpty ? "" : "no node fenced", .faint)
        } else {
            let names = fenced.map { $0.0.id.map { String($0.prefix(8)) } ?? $0.0.endpoint }
            line = TextLine(
                "\(fenced.count) fenced: \(names.joined(separator: ", "))", .bad)
        }
        let pending = reports.reduce(0) { $0 + $1.1.invalidations.receiptsPending }
        if pending > 0 {
            line += TextLine("   ")
            line.append(
                "\(NumberFormat.plural(pending, "purge")) not confirmed by all", .warning)
        }
        let offers = reports.reduce(0) { $0 + ($1.1.cluster?.offersPending ?? 0) }
        if offers > 0 { line.append("   \(NumberFormat.plural(offers, "image")) to hand over") }
        return line
    }

    // MARK: Traffic

    private static let labelColumns = 12

    private func trafficLines(_ columns: Int) -> [TextLine] {
        var who = TextLine("all nodes")
        if let selection, let row = rows.first(where: { $0.index == selection }) {
            who = TextLine(row.name, .strong) + TextLine(" at \(row.endpoint)")
            if let failure = row.failure { who += TextLine("  \(failure.reason)", .bad) }
        }
        guard let totalRates else {
            return [who + TextLine("  no figures yet", .faint), TextLine(), TextLine()]
        }
        let sentences = [
            "p50 \(NumberFormat.latency(totalRates.latency(0.5)))",
            "p99 \(NumberFormat.latency(totalRates.latency(0.99)))",
            "sent \(NumberFormat.byteRate(totalRates.sentPerSecond))",
            "from origins \(NumberFormat.rate(totalRates.fetchesPerSecond))/s "
                + NumberFormat.byteRate(totalRates.receivedPerSecond),
        ]
        who += TextLine("  ") + TextLine(sentences.joined(separator: "  "))
        return [who] + sparklines(totalRates, columns)
    }

    private func sparklines(_ total: TopRates, _ columns: Int) -> [TextLine] {
        let figureColumns = 20
        let count = max(0, min(TopNode.pointsMax, columns - Self.labelColumns - figureColumns))
        let (requests, hits) = history(count)
        let most = requests.compactMap(\.self).max() ?? 0
        func line(
            _ label: String, _ bars: String, _ look: TextStyle, _ figure: String, _ note: String
        )
            -> TextLine
        {
            TextLine(label).padded(to: Self.labelColumns) + TextLine(bars, look) + TextLine("  ")
                + TextLine(figure, .strong) + TextLine(note, .faint)
        }
        return [
            line(
                "requests/s", Bar.sparkline(requests, most: most, columns: count), .accent,
                NumberFormat.rate(total.requestsPerSecond), "  most \(NumberFormat.rate(most))"),
            line(
                "hit ratio", Bar.sparkline(hits, most: 1, columns: count), .good,
                NumberFormat.percent(total.requests.hitRatio),
                "  bytes \(NumberFormat.percent(total.bytes.hitRatio))"),
        ]
    }

    // MARK: Keys

    private var keyLine: TextLine {
        let keys = [
            ("q", "quit"), ("s", "sort: \(arguments.rawValue)"),
            ("p", isPaused ? "go on" : "pause"),
            ("n", "next node"), ("?", showsHelp ? "close help" : "help"),
        ]
        return keys.reduce(into: TextLine()) { line, key in
            if line.columns > 0 { line.append("   ") }
            line.append(" \(key.0) ", .reversed)
            line.append(" \(key.1)")
        }
    }

    private static let helpLines: [TextLine] = {
        var pairs = KeyValueTable()
        pairs.append("q, Ctrl-C", "quit")
        pairs.append("s", "sort nodes: as given, requests, fewest hits, p99, memory, origin")
        pairs.append("p, space", "pause; nobody is asked meanwhile")
        pairs.append("n, Tab, ↓", "the next node: its traffic, images and purges alone")
        pairs.append("N, ↑", "the node before it")
        pairs.append("Esc", "all nodes together")
        pairs.append("?, h", "open and close this")
        return pairs.lines() + [
            TextLine(),
            TextLine(
                "Rates, latencies and ratios are of the last 5 s. HIT: of the requests that the"),
            TextLine(
                "cache could answer, those the origin gave no body for; BYTES: the same of bytes."),
            TextLine("ORIG/S: fetches from origins. LAG: purges that others know a node lacks."),
        ]
    }()
}
