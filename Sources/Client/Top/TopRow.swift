import Admin
import Ground

/// A row of the table of nodes: a queried node, or a member that cannot be queried.
struct TopRow: Sendable {
    /// The index in ``TopState/nodes``; `nil` for a member that is not queried.
    var index: Int?
    /// The node id; `nil` if unknown.
    var id: String?
    /// The address.
    var endpoint: String
    /// The rates; `nil` if unknown.
    var rates: TopRates?
    /// The latest statistics; `nil` without any.
    var report: StatisticsDocument?
    /// The current failure of the node.
    var failure: TopNode.Failure?
    /// The member as another node sees it.
    var member: MemberDocument?
    /// The number of invalidations that it lacks according to others; `nil` if unknown.
    var lag: UInt64?

    /// The conditions that the node reports; empty for a member that is not queried.
    var conditions: [Condition] = []

    /// The name, the first digits of the id, or the address.
    var name: String {
        if let member, !member.name.isEmpty { return member.name }
        return id.map { String($0.prefix(8)) } ?? endpoint
    }

    /// Returns the most important part of the node's state.
    func state(now: Instant) -> TextLine {
        if let failure {
            let isDead = member?.state == "dead"
            // Other nodes may have noticed it earlier.
            let silence = max(
                (now - failure.since).milliseconds,
                isDead ? member?.millisecondsSinceContact ?? 0 : 0)
            let time = NumberFormat.duration(milliseconds: silence)
            // A node that responds with an error is not silent.
            if !isDead, failure.reason.hasPrefix("answered ") {
                return TextLine(String(failure.reason.prefix(12)), .bad)
            }
            let word = isDead ? "dead" : "silent"
            return TextLine("\(word) \(time.prefix { $0 != " " })", .bad)
        }
        guard let report else {
            return member?.reportedState ?? TextLine("asked", .faint)
        }
        if report.isFenced {
            let time =
                report.fencedMilliseconds.map { NumberFormat.duration(milliseconds: $0) } ?? ""
            return TextLine("fenced \(time.prefix { $0 != " " })", .bad)
        }
        if report.readiness != "ready" { return TextLine(report.readiness, .warning) }
        if let member, member.state == "suspected" { return TextLine("suspected", .warning) }
        if member?.isCaughtUp == false { return TextLine("joining", .warning) }
        guard !conditions.isEmpty else { return TextLine("ready", .good) }
        return conditions.contains(where: \.isCritical)
            ? TextLine("critical", .bad) : TextLine("warning", .warning)
    }
}

/// The table of nodes.
extension TopRow {
    /// A column of the table of nodes.
    private struct Column {
        let title: String
        let width: Int
        var isLeft = false
        /// The order in which columns are left out where the terminal is too narrow: the highest
        /// rank first; those of rank 0 are always shown.
        let rank: Int
        let cell: (TopRow) -> TextLine
    }

    /// Returns the rows as a table of at most `columns`, the row of node `selection` emphasized.
    static func lines(
        _ rows: [TopRow], selected selection: Int?, _ columns: Int, _ now: Instant
    ) -> [TextLine] {
        var shown = Self.columns(
            now, nameColumns: rows.map { TextLine($0.name).columns }.max() ?? 0)
        while shown.reduce(shown.count - 1, { $0 + $1.width }) > columns {
            guard let least = shown.indices.max(by: { shown[$0].rank < shown[$1].rank }),
                shown[least].rank > 0
            else { break }
            shown.remove(at: least)
        }
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

    /// Returns all columns; the widest name has `nameColumns`.
    private static func columns(_ now: Instant, nameColumns: Int) -> [Column] {
        [
            Column(title: "NODE", width: max(8, min(20, nameColumns)), isLeft: true, rank: 0) {
                TextLine($0.name)
            },
            Column(title: "AT", width: 21, isLeft: true, rank: 10) { TextLine($0.endpoint) },
            Column(title: "STATE", width: 12, isLeft: true, rank: 0) { $0.state(now: now) },
        ] + rateColumns + tierColumns + [
            Column(
                title: "ORIG/S", width: 6, rank: 5,
                cell: figure { NumberFormat.rate($0.fetchesPerSecond) }),
            Column(title: "KEYS", width: 5, rank: 11) { row in
                guard let member = row.member, member.primaryShare > 0 else { return none }
                return TextLine(NumberFormat.percent(member.primaryShare))
            },
            Column(title: "LAG", width: 4, rank: 4) { row in
                guard let lag = row.lag else { return none }
                return TextLine(NumberFormat.rate(Double(lag)), lag == 0 ? .plain : .warning)
            },
        ]
    }

    private static let none = TextLine("–", .faint)

    /// Returns the cell of a rate.
    private static func figure(_ text: @escaping (TopRates) -> String) -> (TopRow) -> TextLine {
        { row in row.rates.map { TextLine(text($0)) } ?? none }
    }

    /// The columns of requests and responses.
    private static var rateColumns: [Column] {
        [
            Column(
                title: "REQ/S", width: 6, rank: 1,
                cell: figure { NumberFormat.rate($0.requestsPerSecond) }),
            Column(
                title: "HIT", width: 6, rank: 2,
                cell: figure { NumberFormat.percent($0.requests.hitRatio) }),
            Column(
                title: "BYTES", width: 6, rank: 8,
                cell: figure { NumberFormat.percent($0.bytes.hitRatio) }),
            Column(title: "5XX", width: 5, rank: 2) { row in
                guard let share = row.rates?.serverErrorShare else { return none }
                return TextLine(NumberFormat.percent(share), share > 0 ? .bad : .plain)
            },
            Column(
                title: "P50", width: 5, rank: 7,
                cell: figure { NumberFormat.latency($0.latency(0.5)) }),
            Column(
                title: "P99", width: 5, rank: 3,
                cell: figure { NumberFormat.latency($0.latency(0.99)) }),
            Column(
                title: "SENT", width: 10, rank: 9,
                cell: figure { NumberFormat.byteRate($0.sentPerSecond) }),
        ]
    }

    /// The columns of memory and disk.
    private static var tierColumns: [Column] {
        typealias Tier = (StatisticsDocument) -> (any TierUsage)?
        func share(_ tier: @escaping Tier) -> (TopRow) -> TextLine {
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
            Column(title: "MEM", width: 4, rank: 6, cell: share { $0.memory }),
            Column(title: "", width: 11, rank: 12, cell: used { $0.memory }),
            Column(title: "DISK", width: 4, rank: 6, cell: share { $0.disk }),
            Column(title: "", width: 11, rank: 12, cell: used { $0.disk }),
        ]
    }
}

extension TopState {
    /// The rows in the selected order; members that are not queried come last.
    var rows: [TopRow] {
        let views = nodes.compactMap { node in node.report.map { (node.id, $0.members) } }
        let members = memberViews(views)
        let asked = nodes.indices.map { row($0, members, views.map(\.1)) }
        var known = Set(asked.compactMap(\.id))
        let silent = asked.indices.filter { asked[$0].id == nil }
        let others = members.values.filter {
            !known.contains($0.node) && $0.state != "left"
        }.sorted { $0.node < $1.node }
        var rows = asked
        // An unidentified silent node and a single unqueried member must be the same.
        if silent.count == 1, others.count == 1 {
            rows[silent[0]].id = others[0].node
            rows[silent[0]].member = others[0]
            rows[silent[0]].lag = lag(of: others[0].node, views.map(\.1))
            known.insert(others[0].node)
        }
        rows = sorted(rows)
        return rows
            + others.filter { !known.contains($0.node) }.map { member in
                TopRow(
                    id: member.node, endpoint: member.address, member: member,
                    lag: lag(of: member.node, views.map(\.1)))
            }
    }

    /// Returns the view of each member by other nodes; nodes that are not fenced take precedence.
    private func memberViews(_ views: [(id: String?, members: [MemberDocument])]) -> [String:
        MemberDocument]
    {
        var found: [String: MemberDocument] = [:]
        let fenced = Set(nodes.filter { $0.report?.isFenced == true }.compactMap(\.id))
        let ordered =
            views.filter { view in view.id.map { !fenced.contains($0) } ?? true }
            + views.filter { view in view.id.map(fenced.contains) ?? false }
        for member in ordered.flatMap(\.members) where !member.isSelf {
            if found[member.node] == nil { found[member.node] = member }
        }
        // A node's view of itself counts where no other node has one.
        for member in ordered.flatMap(\.members) where member.isSelf {
            if found[member.node] == nil { found[member.node] = member }
        }
        return found
    }

    /// Returns the row of a queried node.
    private func row(
        _ index: Int, _ members: [String: MemberDocument], _ views: [[MemberDocument]]
    ) -> TopRow {
        let node = nodes[index]
        return TopRow(
            index: index, id: node.id, endpoint: node.endpoint, rates: node.rates,
            report: node.report, failure: node.failure, member: node.id.flatMap { members[$0] },
            lag: node.id.flatMap { lag(of: $0, views) },
            conditions: node.reportedConditions ?? [])
    }

    /// Returns the largest lag that others report for a node; `nil` if none does.
    private func lag(of id: String, _ views: [[MemberDocument]]) -> UInt64? {
        views.joined().filter { $0.node == id && !$0.isSelf }.compactMap(\.lagRecords).max()
    }

    /// Sorts rows; rows with equal values keep their order, and those without a value are last.
    private func sorted(_ rows: [TopRow]) -> [TopRow] {
        func figure(_ row: TopRow) -> Double? {
            switch order {
            case .asListed: -Double(row.index ?? 0)
            case .requests: row.rates?.requestsPerSecond
            case .hits: row.rates?.requests.hitRatio.map { -$0 }
            case .latency: row.rates?.latency(0.99)
            case .memory: row.report?.memory.share
            case .origin: row.rates?.fetchesPerSecond
            }
        }
        return rows.enumerated().sorted { left, right in
            let (one, other) = (
                figure(left.element) ?? -.infinity, figure(right.element) ?? -.infinity
            )
            return one == other ? left.offset < right.offset : one > other
        }.map(\.element)
    }
}
