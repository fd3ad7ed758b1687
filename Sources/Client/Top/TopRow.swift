import Admin
import Ground

/// A line of the table of nodes: a node that is asked, or a member that cannot be.
struct TopRow: Sendable {
    /// Its place in ``TopState/nodes``; nil for a member that is not asked.
    var index: Int?
    var id: String?
    var endpoint: String
    var rates: TopRates?
    var report: StatisticsReport?
    var failure: TopNode.Failure?
    /// As another node sees it.
    var member: MemberDocument?
    /// Purges that others know it lacks; nil if nobody knows.
    var lag: UInt64?

    /// The first digits of its id, or where it is asked.
    var name: String { id.map { String($0.prefix(8)) } ?? endpoint }

    /// What matters most of how it stands.
    func state(now: Instant) -> TextLine {
        if let failure {
            let isDead = member?.state == "dead"
            // Others may have known it for longer.
            let silence = max(
                (now - failure.since).milliseconds,
                isDead ? member?.millisecondsSinceContact ?? 0 : 0)
            let time = NumberFormat.duration(milliseconds: silence)
            // What answers is not silent: it says no.
            if !isDead, failure.reason.hasPrefix("answered ") {
                return TextLine(String(failure.reason.prefix(12)), .bad)
            }
            let word = isDead ? "dead" : "silent"
            return TextLine("\(word) \(time.prefix { $0 != " " })", .bad)
        }
        guard let report else {
            guard let member else { return TextLine("asked", .faint) }
            return TextLine(member.state, MemberDocument.style(ofState: member.state))
        }
        if report.isFenced {
            let time =
                report.fencedMilliseconds.map { NumberFormat.duration(milliseconds: $0) } ?? ""
            return TextLine("fenced \(time.prefix { $0 != " " })", .bad)
        }
        if report.readiness != "ready" { return TextLine(report.readiness, .warning) }
        if let member, member.state == "suspected" { return TextLine("suspected", .warning) }
        if member?.isCaughtUp == false { return TextLine("joining", .warning) }
        return TextLine("ready", .good)
    }
}

extension TopState {
    /// In their order; members that are not asked come last.
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
        // One that was never heard of, and one member that nobody asks: they are the same.
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

    /// What others say of each member, those first who are not fenced.
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
        // Of itself it knows what nobody else may know.
        for member in ordered.flatMap(\.members) where member.isSelf {
            if found[member.node] == nil { found[member.node] = member }
        }
        return found
    }

    private func row(
        _ index: Int, _ members: [String: MemberDocument], _ views: [[MemberDocument]]
    ) -> TopRow {
        let node = nodes[index]
        return TopRow(
            index: index, id: node.id, endpoint: node.endpoint, rates: node.rates,
            report: node.report, failure: node.failure, member: node.id.flatMap { members[$0] },
            lag: node.id.flatMap { lag(of: $0, views) })
    }

    private func lag(of id: String, _ views: [[MemberDocument]]) -> UInt64? {
        views.joined().filter { $0.node == id && !$0.isSelf }.compactMap(\.lagRecords).max()
    }

    /// Those with the same figure stay as they were given; those without are last.
    private func sorted(_ rows: [TopRow]) -> [TopRow] {
        func figure(_ row: TopRow) -> Double? {
            switch arguments {
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
