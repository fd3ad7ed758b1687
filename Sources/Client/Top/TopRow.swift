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

    /// The first digits of the id, or the address.
    var name: String { id.map { String($0.prefix(8)) } ?? endpoint }

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
            lag: node.id.flatMap { lag(of: $0, views) })
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
