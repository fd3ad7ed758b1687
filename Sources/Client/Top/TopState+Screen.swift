import Admin
package import Ground

/// The screen of `nuthatch top`.
extension TopState {
    /// Returns the lines of a screen, none wider than `columns`.
    ///
    /// With `rows`, exactly that number; with `nil`, as many as required, without the keys.
    package func render(columns: Int, rows: Int?, now: Instant) -> [TextLine] {
        let tableRows = self.rows
        var lines = headLines(columns, rows, now)
        guard let rows else {
            lines +=
                trafficLines(columns) + [TextLine()]
                + TopRow.lines(tableRows, selected: selection, columns, now)
            return (lines + listLines(columns, room: 30)).map { $0.truncated(to: columns) }
        }
        // The keys are on the last line, after a blank one if there is room.
        if showsHelp {
            lines += TopKey.helpLines
        } else if view == .overview {
            lines +=
                trafficLines(columns) + [TextLine()]
                + TopRow.lines(tableRows, selected: selection, columns, now)
            lines += listLines(columns, room: rows - lines.count - 1)
        } else {
            lines += viewLines(columns, room: rows - lines.count - 1, now)
        }
        lines = Array(lines.prefix(max(0, rows - 1)))
        while lines.count < rows - 1 { lines.append(TextLine()) }
        if rows > 0 { lines.append(keyLine) }
        return lines.map { $0.truncated(to: columns) }
    }

    // MARK: The head

    /// Returns the lines at the top: the worst state in words, the other conditions as far as there
    /// is room, and the members.
    private func headLines(_ columns: Int, _ rows: Int?, _ now: Instant) -> [TextLine] {
        let mode =
            isPaused
            ? TextLine("paused", .reversed)
            : TextLine(
                "every \(NumberFormat.duration(milliseconds: interval.milliseconds))", .faint)
        let title = TextLine("nuthatch top", .strong) + TextLine("  ") + membersLine
        let gap = columns - title.columns - mode.columns
        let second =
            gap > 0 ? title + TextLine(String(repeating: " ", count: gap)) + mode : title
        let hasReport = nodes.contains { $0.report != nil || $0.failure != nil }
        let conditions = conditions(now: now)
        let first = hasReport ? conditions.headline : TextLine("no response yet", .faint)
        let further = view == .conditions ? 0 : rows.map { $0 < 30 ? 1 : 5 } ?? 5
        return [first] + conditions.furtherLines(further) + [second]
            + (fenceLine.columns > 0 ? [fenceLine] : []) + [TextLine()]
    }

    /// Returns the contents of a view other than the overview, in at most `room` lines.
    private func viewLines(_ columns: Int, room: Int, _ now: Instant) -> [TextLine] {
        let members = referenceNode?.report?.members ?? []
        let lines =
            switch view {
            case .overview: [TextLine]()
            case .conditions: conditions(now: now).lines(columnsMax: columns)
            case .origins: OriginDocument.lines(origins, columnsMax: columns)
            case .sites: SiteDocument.lines(sites, columnsMax: columns)
            case .members:
                MemberDocument.reportLines(members, columnsMax: columns)
                    + [members.totalLine].compactMap(\.self)
            case .certificates:
                CertificateDocument.lines(
                    selectedNodes.flatMap(\.certificates), columnsMax: columns)
            }
        guard !lines.isEmpty else { return [TextLine("no \(view.title)", .faint)] }
        guard lines.count > room else { return lines }
        let left = lines.count - room + 1
        return lines.prefix(max(0, room - 1)) + [TextLine("and \(left) more lines", .faint)]
    }

    /// The line of member states.
    private var membersLine: TextLine {
        guard let report = referenceNode?.report else { return TextLine("no node responds", .bad) }
        guard let cluster = report.cluster else { return TextLine("one node, not in a cluster") }
        let present = report.members.filter { $0.state != "left" }
        var line = TextLine("cluster of \(present.count): ")
        for (index, state) in ["alive", "suspected", "dead", "unknown"].enumerated() {
            let count = present.count { $0.state == state }
            guard count > 0 || index == 0 else { continue }
            if index > 0 { line.append(", ") }
            line.append("\(count) \(state)", MemberDocument.style(ofState: state))
        }
        return line + TextLine(", \(NumberFormat.plural(UInt64(cluster.voterCount), "voter"))")
    }

    /// The line of fenced nodes, unconfirmed purges and entries to hand off.
    private var fenceLine: TextLine {
        let reports = nodes.compactMap { node in node.report.map { (node, $0) } }
        let fenced = reports.filter(\.1.isFenced)
        var line = TextLine()
        if !fenced.isEmpty {
            line.append(
                "\(fenced.count) fenced: \(fenced.map(\.0.name).joined(separator: ", "))", .bad)
        }
        let pending = reports.reduce(0) { $0 + $1.1.invalidations.receiptsPending }
        if pending > 0 {
            if line.columns > 0 { line.append("   ") }
            line.append(
                "\(NumberFormat.plural(pending, "purge")) not confirmed by all", .warning)
        }
        let offers = reports.reduce(0) { $0 + ($1.1.cluster?.offersPending ?? 0) }
        if offers > 0 {
            if line.columns > 0 { line.append("   ") }
            line.append("\(NumberFormat.plural(offers, "image")) to hand off")
        }
        return line
    }

    // MARK: Traffic

    private static let labelColumns = 12

    /// Returns the lines of the traffic.
    private func trafficLines(_ columns: Int) -> [TextLine] {
        var who = TextLine("all nodes")
        if let selection, let row = rows.first(where: { $0.index == selection }) {
            who = TextLine(row.name, .strong) + TextLine(" at \(row.endpoint)")
            if let failure = row.failure { who += TextLine("  \(failure.reason)", .bad) }
        }
        guard let totalRates else {
            return [who + TextLine("  no figures yet", .faint), TextLine(), TextLine(), TextLine()]
        }
        let sentences = [
            "p50 \(NumberFormat.latency(totalRates.latency(0.5)))",
            "p99 \(NumberFormat.latency(totalRates.latency(0.99)))",
            "sent \(NumberFormat.byteRate(totalRates.sentPerSecond))",
            "from origins \(NumberFormat.rate(totalRates.fetchesPerSecond))/s "
                + NumberFormat.byteRate(totalRates.receivedPerSecond),
        ]
        who += TextLine("  ") + TextLine(sentences.joined(separator: "  "))
        return [who] + sparklines(totalRates, columns) + [responsesLine(totalRates)]
    }

    /// Returns the line of responses by status class, and of errors by reason.
    private func responsesLine(_ total: TopRates) -> TextLine {
        let (counts, label) = (total.responses, TextLine("responses").padded(to: Self.labelColumns))
        guard counts.all > 0 else { return label + TextLine("none by class", .faint) }
        let classes: [(String, UInt64, TextStyle)] = [
            ("2xx", counts.successful, .plain), ("3xx", counts.redirected, .plain),
            ("4xx", counts.clientErrors, .plain), ("5xx", counts.serverErrors, .bad),
        ]
        var line = label
        for (name, count, style) in classes where count > 0 {
            line.append("\(name) \(NumberFormat.percent(counts.share(count)))  ", style)
        }
        for (name, errors) in [("refused", total.refused), ("origins", total.failed)] {
            let rates = errors.items.filter { $0.count > 0 }.sorted { $0.count > $1.count }.map {
                "\($0.name) \(NumberFormat.rate(Double($0.count) / total.seconds))/s"
            }
            guard !rates.isEmpty else { continue }
            line.append("\(name): \(rates.joined(separator: ", "))  ", .warning)
        }
        return line
    }

    /// Returns the lines of the history.
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

    /// The line of keys.
    private var keyLine: TextLine {
        let keys = [
            ("q", "quit"), ("v", view.rawValue), ("n", "next node"),
            ("s", "sort: \(order.rawValue)"), ("p", isPaused ? "go on" : "pause"),
            ("?", showsHelp ? "close" : "help"),
        ]
        return keys.reduce(into: TextLine()) { line, key in
            if line.columns > 0 { line.append("  ") }
            line.append(" \(key.0) ", .reversed)
            line.append(" \(key.1)")
        }
    }
}

extension TopState.View {
    /// The contents in words.
    fileprivate var title: String { self == .certificates ? "certificates" : rawValue }
}

/// The tables of the screen of `nuthatch top`.
extension TopState {
    // MARK: Images and purges

    /// Returns the most requested entries and the latest purges, in at most `room` lines; none for
    /// fewer than four.
    func listLines(_ columns: Int, room: Int) -> [TextLine] {
        let purges = purgeLines(columns)
        let images = hotLines(columns)
        // A blank line before each, and a heading.
        guard room >= 4 else { return [] }
        let half = min(purges.count, max(3, (room - 2) / 3))
        let shownImages = images.prefix(max(0, room - 2 - half))
        return [TextLine()] + shownImages + [TextLine()] + purges.prefix(half)
    }

    /// Returns the table of the most requested entries.
    private func hotLines(_ columns: Int) -> [TextLine] {
        guard !hottest.isEmpty else { return [TextLine("no image was requested often", .faint)] }
        var table = Table(
            [.right("REQUESTS"), .right("SIZE"), .left("TYPE"), .flexible("HOTTEST IMAGES")],
            headStyle: .accent)
        for entry in hottest.prefix(40) {
            table.append([
                TextLine(NumberFormat.rate(Double(entry.accesses))),
                TextLine(NumberFormat.bytes(entry.bodyBytes)), TextLine(entry.contentType),
                TextLine(entry.url),
            ])
        }
        return table.lines(columnsMax: columns)
    }

    /// Returns the table of purges.
    private func purgeLines(_ columns: Int) -> [TextLine] {
        guard !purges.isEmpty else { return [TextLine("no purges", .faint)] }
        var table = Table(
            [.right("AGE"), .left("MODE"), .left("CONFIRMED"), .flexible("LAST PURGES")],
            headStyle: .accent)
        for receipt in purges.prefix(20) {
            let all = receipt.members.count
            let share = all == 0 ? 0 : Double(receipt.confirmed) / Double(all)
            let look: TextStyle =
                receipt.isFullyConfirmed ? .good : receipt.unreachable > 0 ? .bad : .warning
            table.append([
                TextLine(
                    String(
                        NumberFormat.duration(milliseconds: receipt.ageMilliseconds)
                            .prefix { $0 != " " })),
                TextLine(receipt.mode),
                TextLine(Bar.text(share, columns: 5), look)
                    + TextLine(" \(receipt.confirmed)/\(all)"),
                TextLine(receipt.targetSummary.main + receipt.targetSummary.more),
            ])
        }
        return table.lines(columnsMax: columns)
    }
}
