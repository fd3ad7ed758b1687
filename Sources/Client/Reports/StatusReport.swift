import Admin

/// `/admin/v1/status` as who has asked for it reads it; ``StatusDocument`` is what writes it.
///
/// A newer node may say more, which is not read; words that are not known here are kept as they
/// are.
package struct StatusReport: Hashable, Sendable, Decodable {
    package var node: String
    package var version: String
    package var uptimeMilliseconds: Int64
    package var role: String
    package var readiness: String
    package var isFenced: Bool
    /// For how long; nil if it is not.
    package var fencedMilliseconds: Int64?
    package var memory: TierUsage
    /// Nil without a disk.
    package var disk: TierUsage?
    /// Nil for a node that is in no cluster.
    package var cluster: ClusterReport?
    /// Places that do not answer a node which is joining, and why; nil of one that does not say so.
    package var unreachableSeeds: [String]?
    package var invalidations: InvalidationsReport
    package var sites: [String]

    private enum CodingKeys: String, CodingKey {
        case node, version, role, readiness, memory, disk, cluster, invalidations,
            sites
        case unreachableSeeds = "missing"
        case uptimeMilliseconds = "uptime_ms"
        case isFenced = "fenced"
        case fencedMilliseconds = "fenced_ms"
    }
}

/// What memory or the disk holds.
package struct TierUsage: Hashable, Sendable, Decodable {
    package var usedBytes: UInt64
    package var limitBytes: UInt64
    package var entries: UInt64
    /// Of memory: evicted, and still being sent.
    package var pinnedBytes: UInt64?
    /// Of a disk: whether it can be used.
    package var isUp: Bool?

    /// Of its limit, from 0 to 1.
    package var share: Double {
        limitBytes == 0 ? 0 : min(1, Double(usedBytes) / Double(limitBytes))
    }

    private enum CodingKeys: String, CodingKey {
        case entries
        case usedBytes = "used_bytes"
        case limitBytes = "limit_bytes"
        case pinnedBytes = "pinned_bytes"
        case isUp = "up"
    }
}

package struct ClusterReport: Hashable, Sendable, Decodable {
    package var aliveCount: UInt64
    package var voterCount: UInt64
    /// Images that others are to be offered, or have not answered for.
    package var offersPending: UInt64
    /// It hands over everything that it holds.
    package var isHandingOff: Bool
    /// It looks for its cluster and has found none; nil of a node that does not say so.
    package var isJoining: Bool?

    private enum CodingKeys: String, CodingKey {
        case isJoining = "joining"
        case aliveCount = "members_alive"
        case voterCount = "members_counted"
        case offersPending = "offers_pending"
        case isHandingOff = "handing_over"
    }
}

package struct InvalidationsReport: Hashable, Sendable, Decodable {
    package var applied: UInt64
    package var records: UInt64
    /// Purges of this node that somebody has not confirmed.
    package var receiptsPending: UInt64

    private enum CodingKeys: String, CodingKey {
        case applied, records
        case receiptsPending = "receipts_pending"
    }
}

/// How things stand with a node, in a few lines.
extension StatusReport {
    /// `statistics` are of the same moment, `place` where the node was asked.
    package func lines(_ statistics: StatisticsReport, at place: String) -> [TextLine] {
        var pairs = KeyValueTable()
        pairs.append("node", "\(node) at \(place)")
        pairs.append(
            "version",
            "\(version), up \(NumberFormat.duration(milliseconds: uptimeMilliseconds))")
        pairs.append("health", health)
        pairs.append("memory", memory.line("entry", "entries"))
        pairs.append("disk", diskLine)
        pairs.append("requests", Self.requestsLine(statistics))
        pairs.append("origin", Self.originLine(statistics))
        pairs.append("cluster", clusterLine(statistics.members))
        pairs.append("log", logLine)
        if !sites.isEmpty { pairs.append("sites", sites.joined(separator: ", ")) }
        pairs.append("you may", permissionText)
        return pairs.lines()
    }

    private var permissionText: String {
        switch role {
        case "read": "look"
        case "purge": "look and purge"
        case "admin": "do everything"
        default: role
        }
    }

    /// `ready`, or what it is, and whether it is fenced.
    package var health: TextLine {
        let word = TextLine(readiness, readiness == "ready" ? .good : .warning)
        guard isFenced else { return word }
        let time =
            fencedMilliseconds.map { " for \(NumberFormat.duration(milliseconds: $0))" } ?? ""
        return word + TextLine(", ") + TextLine("fenced\(time)", .bad)
    }

    private var diskLine: TextLine {
        guard let disk else { return TextLine("none") }
        return disk.isUp == false
            ? TextLine("down", .bad) + TextLine("; serving from memory and origins")
            : disk.line("entry", "entries")
    }

    private static func requestsLine(_ statistics: StatisticsReport) -> TextLine {
        let requests = statistics.requests
        guard requests.all > 0 else { return TextLine("none yet") }
        return TextLine(
            "\(NumberFormat.count(requests.all)) since the start; "
                + "hit ratio \(NumberFormat.percent(requests.hitRatio)) of requests, "
                + "\(NumberFormat.percent(statistics.bytes.hitRatio)) of bytes")
    }

    private static func originLine(_ statistics: StatisticsReport) -> TextLine {
        let (origin, sent) = (statistics.origin, statistics.bytes.cacheable)
        var line = TextLine(NumberFormat.plural(origin.fetches, "fetch", "fetches"))
        if origin.fetchesFailed > 0 {
            line.append(", ")
            line.append("\(NumberFormat.count(origin.fetchesFailed)) failed", .warning)
        }
        line.append("; \(NumberFormat.bytes(origin.receivedBytes)) received")
        if sent > origin.receivedBytes {
            line.append(" of \(NumberFormat.bytes(sent)) sent")
            let saved = Double(sent - origin.receivedBytes) / Double(sent)
            line.append(": \(NumberFormat.percent(saved)) saved")
        }
        return line
    }

    private func clusterLine(_ members: [MemberDocument]) -> TextLine {
        guard let cluster else { return TextLine("in none") }
        if cluster.isJoining == true {
            let missing = self.unreachableSeeds ?? []
            let what = missing.isEmpty ? "more nodes are expected" : missing.joined(separator: "; ")
            return TextLine("looking for it", .bad) + TextLine(": \(what)")
        }
        var line = TextLine("")
        let states = ["alive", "suspected", "dead", "unknown"].compactMap { state -> TextLine? in
            let count = members.count { $0.state == state }
            guard count > 0 else { return nil }
            return TextLine("\(count) \(state)", MemberDocument.style(ofState: state))
        }
        for (index, state) in states.enumerated() {
            if index > 0 { line.append(", ") }
            line += state
        }
        line.append("; \(cluster.voterCount) counted")
        if let share = members.first(where: \.isSelf)?.primaryShare {
            line.append("; owns \(NumberFormat.percent(share)) of the keys")
        }
        if cluster.offersPending > 0 {
            line.append("; \(NumberFormat.plural(cluster.offersPending, "image")) to hand over")
        }
        return line
    }

    private var logLine: TextLine {
        let applied = NumberFormat.plural(invalidations.applied, "record") + " applied"
        guard invalidations.receiptsPending > 0 else { return TextLine(applied) }
        let pending = NumberFormat.plural(invalidations.receiptsPending, "purge")
        return TextLine(applied + "; ") + TextLine("\(pending) not confirmed by all", .warning)
    }
}

extension TierUsage {
    /// `1.5 GiB of 2 GiB (75%), 3,000 entries`.
    package func line(_ one: String, _ many: String) -> TextLine {
        var line = TextLine(
            "\(NumberFormat.bytes(usedBytes)) of \(NumberFormat.bytes(limitBytes)) "
                + "(\(NumberFormat.wholePercent(share))), "
                + "\(NumberFormat.plural(entries, one, many))"
        )
        if let pinnedBytes, pinnedBytes > 0 {
            line.append(", \(NumberFormat.bytes(pinnedBytes)) evicted and still being sent")
        }
        return line
    }
}

/// Several nodes under one another.
package enum StatusTable {
    /// What came of asking one node.
    package enum Row: Sendable {
        case received(StatusReport, StatisticsReport)
        case failed(String)
    }

    /// A line for each node, in the order in which they were asked.
    package static func lines(
        _ rows: [(place: String, row: Row)], columnsMax: Int?
    ) -> [TextLine] {
        var table = Table([
            .left("AT"), .left("NODE"), .flexible("HEALTH"), .left("ALIVE"), .right("MEMORY"),
            .right("DISK"), .right("REQUESTS"), .right("HITS"), .right("BYTES"), .right("UP"),
        ])
        for (place, row) in rows {
            switch row {
            case .received(let status, let statistics):
                table.append(
                    [TextLine(place), TextLine(String(status.node.prefix(8)))]
                        + cells(status, statistics))
            case .failed(let why):
                table.append(
                    [TextLine(place), TextLine("–"), TextLine(why, .bad)]
                        + Array(repeating: TextLine("–"), count: 7))
            }
        }
        return table.lines(columnsMax: columnsMax)
    }

    private static func cells(
        _ status: StatusReport, _ statistics: StatisticsReport
    ) -> [TextLine] {
        let alive = statistics.members.count { $0.state == "alive" }
        let all = statistics.members.count { $0.state != "left" }
        return [
            status.health,
            all == 0
                ? TextLine("–") : TextLine("\(alive)/\(all)", alive == all ? .plain : .warning),
            TextLine(NumberFormat.wholePercent(status.memory.share)),
            status.disk.map(disk) ?? TextLine("–"),
            TextLine(NumberFormat.count(statistics.requests.all)),
            TextLine(NumberFormat.percent(statistics.requests.hitRatio)),
            TextLine(NumberFormat.percent(statistics.bytes.hitRatio)),
            TextLine(
                String(
                    NumberFormat.duration(milliseconds: status.uptimeMilliseconds)
                        .split(separator: " ")[0])),
        ]
    }

    private static func disk(_ disk: TierUsage) -> TextLine {
        disk.isUp == false
            ? TextLine("down", .bad) : TextLine(NumberFormat.wholePercent(disk.share))
    }
}
