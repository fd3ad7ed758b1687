import Admin
import Ground

/// The tables of the screen of `nuthatch top`.
extension TopState {
    private struct Column {
        let title: String
        let width: Int
        var isLeft = false
        /// It is shown on terminals of so many columns and more.
        var columnsMin = 0
        let cell: (TopRow) -> TextLine
    }

    // MARK: Nodes

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

    private static func columns(_ now: Instant) -> [Column] {
        let none = TextLine("–", .faint)
        func figure(_ text: @escaping (TopRates) -> String) -> (TopRow) -> TextLine {
            { row in row.rates.map { TextLine(text($0)) } ?? none }
        }
        func tier(_ tier: @escaping (StatisticsReport) -> TierUsage?) -> (TopRow) -> TextLine {
            { row in
                guard let tier = row.report.flatMap(tier) else { return none }
                if tier.isUp == false { return TextLine("down", .bad) }
                return TextLine(NumberFormat.wholePercent(tier.share))
            }
        }
        func used(_ tier: @escaping (StatisticsReport) -> TierUsage?) -> (TopRow) -> TextLine {
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

    /// What is asked for most and the last purges, in so many lines at most.
    func listLines(_ columns: Int, room: Int) -> [TextLine] {
        let purges = purgeLines(columns)
        let images = hotLines(columns)
        // A blank line before each, and a head.
        guard room >= 4 else { return [] }
        let half = min(purges.count, max(3, (room - 2) / 3))
        let shownImages = images.prefix(max(0, room - 2 - half))
        return [TextLine()] + shownImages + [TextLine()] + purges.prefix(half)
    }

    private func hotLines(_ columns: Int) -> [TextLine] {
        guard !hottest.isEmpty else { return [TextLine("no image was asked for often", .faint)] }
        var table = Table(
            [.right("ASKED"), .right("SIZE"), .left("TYPE"), .flexible("HOTTEST IMAGES")],
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
