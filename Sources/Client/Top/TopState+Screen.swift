import Admin
package import Ground

/// The screen of `nuthatch top`.
extension TopState {
    /// Returns the lines of a screen, none wider than `columns`.
    ///
    /// With `rows`, exactly that number; with `nil`, as many as required, without the keys.
    package func render(columns: Int, rows: Int?, now: Instant) -> [TextLine] {
        var lines = headLines(columns, now)
        lines += nodeLines(columns, now)
        guard let rows else {
            return (lines + listLines(columns, room: 30)).map { $0.truncated(to: columns) }
        }
        // The keys are on the last line, after a blank one if there is room.
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

    /// Returns the lines at the top.
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
        if offers > 0 { line.append("   \(NumberFormat.plural(offers, "image")) to hand off") }
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
            ("q", "quit"), ("s", "sort: \(order.rawValue)"),
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
        pairs.append("p, space", "pause; no node is queried")
        pairs.append("n, Tab, ↓", "next node: only its traffic, images and purges")
        pairs.append("N, ↑", "previous node")
        pairs.append("Esc", "all nodes together")
        pairs.append("?, h", "open or close this help")
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

/// The tables of the screen of `nuthatch top`.
extension TopState {
    /// A column of the table of nodes.
    private struct Column {
        let title: String
        let width: Int
        var isLeft = false
        /// The number of terminal columns from which it is shown.
        var columnsMin = 0
        let cell: (TopRow) -> TextLine
    }

    // MARK: Nodes

    /// Returns the table of nodes.
    func nodeLines(_ columns: Int, _ now: Instant) -> [TextLine] {
        let shown = Self.columns(now).filter { $0.columnsMin <= columns }
        func line(_ look: TextStyle, _ cell: (Column) -> TextLine) -> TextLine {
            shown.enumerated().reduce(into: TextLine()) { line, item in
                if item.offset > 0 { line += TextLine(" ", look) }
                line += cell(item.element).padded(
                    to: item.element.width, isRight: !item.element.isLeft, with: look)
            }
        }
        let heads = line(.reversed) { TextLine($0.title, .reversed) }
        return [heads.padded(to: columns, with: .reversed)]
            + rows.map { row in
                let isChosen = row.index != nil && row.index == selection
                let cells = line(.plain) { $0.cell(row) }
                return isChosen ? cells.styled(.strong) : cells
            }
    }

    /// Returns all columns.
    private static func columns(_ now: Instant) -> [Column] {
        let none = TextLine("–", .faint)
        func figure(_ text: @escaping (TopRates) -> String) -> (TopRow) -> TextLine {
            { row in row.rates.map { TextLine(text($0)) } ?? none }
        }
        typealias Tier = (StatisticsDocument) -> (any TierUsage)?
        func tier(_ tier: @escaping Tier) -> (TopRow) -> TextLine {
            { row in
                guard let tier = row.report.flatMap(tier) else { return none }
                if !tier.isUp { return TextLine("down", .bad) }
                return TextLine(NumberFormat.wholePercent(tier.share))
            }
        }
        func used(_ tier: @escaping Tier) -> (TopRow) -> TextLine {
            { row in
                guard let tier = row.report.flatMap(tier) else { return none }
                return TextLine(Bar.text(tier.share, columns: 4), .accent)
                    + TextLine(" \(NumberFormat.shortBytes(tier.usedBytes))").padded(
                        to: 7, isRight: true)
            }
        }
        return [
            Column(title: "NODE", width: 8, isLeft: true) { TextLine($0.name) },
            Column(title: "AT", width: 21, isLeft: true, columnsMin: 120) { TextLine($0.endpoint) },
            Column(title: "STATE", width: 12, isLeft: true) { $0.state(now: now) },
            Column(
                title: "REQ/S", width: 6, cell: figure { NumberFormat.rate($0.requestsPerSecond) }),
            Column(
                title: "HIT", width: 6,
                cell: figure { NumberFormat.percent($0.requests.hitRatio) }),
            Column(
                title: "BYTES", width: 6, cell: figure { NumberFormat.percent($0.bytes.hitRatio) }),
            Column(title: "P50", width: 5, cell: figure { NumberFormat.latency($0.latency(0.5)) }),
            Column(title: "P99", width: 5, cell: figure { NumberFormat.latency($0.latency(0.99)) }),
            Column(
                title: "SENT", width: 10, columnsMin: 100,
                cell: figure { NumberFormat.byteRate($0.sentPerSecond) }),
            Column(title: "MEM", width: 4, cell: tier { $0.memory }),
            Column(title: "", width: 11, columnsMin: 140, cell: used { $0.memory }),
            Column(title: "DISK", width: 4, cell: tier { $0.disk }),
            Column(title: "", width: 11, columnsMin: 140, cell: used { $0.disk }),
            Column(
                title: "ORIG/S", width: 6, cell: figure { NumberFormat.rate($0.fetchesPerSecond) }),
            Column(title: "KEYS", width: 5, columnsMin: 100) { row in
                guard let member = row.member, member.primaryShare > 0 else { return none }
                return TextLine(NumberFormat.percent(member.primaryShare))
            },
            Column(title: "LAG", width: 4) { row in
                guard let lag = row.lag else { return none }
                return TextLine(NumberFormat.rate(Double(lag)), lag == 0 ? .plain : .warning)
            },
        ]
    }

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
