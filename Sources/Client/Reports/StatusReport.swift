import Admin

/// The document of `/admin/v1/status` as a client decodes it; ``StatusDocument`` encodes it.
///
/// Additional members of a newer version are ignored, and unknown words are kept.
package struct StatusReport: Hashable, Sendable, Decodable {
    /// The node id.
    package var node: String
    /// The version of the program.
    package var version: String
    /// The time since the start.
    package var uptimeMilliseconds: Int64
    /// The caller's role.
    package var role: String
    /// The readiness: `ready`, or the reason against it.
    package var readiness: String
    /// True if the node is fenced.
    package var isFenced: Bool
    /// The time since the fence closed; `nil` if it is open.
    package var fencedMilliseconds: Int64?
    /// The use of memory.
    package var memory: TierUsage
    /// The use of the disk; `nil` without a disk.
    package var disk: TierUsage?
    /// The state of the cluster; `nil` for a node in no cluster.
    package var cluster: ClusterReport?
    /// The seeds that do not respond to a joining node, with reasons; `nil` for other nodes and
    /// from an older version.
    package var unreachableSeeds: [String]?
    /// The state of the invalidation log.
    package var invalidations: InvalidationsReport
    /// The names of the sites.
    package var sites: [String]

    /// The member names of the document.
    private enum CodingKeys: String, CodingKey {
        case node, version, role, readiness, memory, disk, cluster, invalidations,
            sites
        case unreachableSeeds = "missing"
        case uptimeMilliseconds = "uptime_ms"
        case isFenced = "fenced"
        case fencedMilliseconds = "fenced_ms"
    }
}

/// The use of memory or of the disk.
package struct TierUsage: Hashable, Sendable, Decodable {
    /// The bytes in use.
    package var usedBytes: UInt64
    /// The limit in bytes.
    package var limitBytes: UInt64
    /// The number of entries.
    package var entries: UInt64
    /// The bytes of evicted entries that are still being sent; memory only.
    package var pinnedBytes: UInt64?
    /// True if the disk can be used; disk only.
    package var isUp: Bool?

    /// The used share of the limit, from 0 to 1.
    package var share: Double {
        limitBytes == 0 ? 0 : min(1, Double(usedBytes) / Double(limitBytes))
    }

    /// The member names of the document.
    private enum CodingKeys: String, CodingKey {
        case entries
        case usedBytes = "used_bytes"
        case limitBytes = "limit_bytes"
        case pinnedBytes = "pinned_bytes"
        case isUp = "up"
    }
}

/// The state of the cluster as a node sees it.
package struct ClusterReport: Hashable, Sendable, Decodable {
    /// The number of members that are alive.
    package var aliveCount: UInt64
    /// The number of voters.
    package var voterCount: UInt64
    /// The number of queued and unanswered offers.
    package var offersPending: UInt64
    /// True if the node is draining.
    package var isHandingOff: Bool
    /// True if the node is looking for its cluster; `nil` from an older version.
    package var isJoining: Bool?

    /// The member names of the document.
    private enum CodingKeys: String, CodingKey {
        case isJoining = "joining"
        case aliveCount = "members_alive"
        case voterCount = "members_counted"
        case offersPending = "offers_pending"
        case isHandingOff = "handing_over"
    }
}

/// The state of the invalidation log.
package struct InvalidationsReport: Hashable, Sendable, Decodable {
    /// The number of applied invalidations.
    package var applied: UInt64
    /// The number of records held.
    package var records: UInt64
    /// The number of this node's purges that not all members have confirmed.
    package var receiptsPending: UInt64

    /// The member names of the document.
    private enum CodingKeys: String, CodingKey {
        case applied, records
        case receiptsPending = "receipts_pending"
    }
}

/// The status of a node for people.
extension StatusReport {
    /// Returns the lines of the status; `statistics` are of the same time, and `place` is the
    /// node's address.
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

    /// The caller's role and what it permits.
    private var permissionText: String {
        switch role {
        case "read": "look"
        case "purge": "look and purge"
        case "admin": "do everything"
        default: role
        }
    }

    /// The readiness and whether the node is fenced.
    package var health: TextLine {
        let word = TextLine(readiness, readiness == "ready" ? .good : .warning)
        guard isFenced else { return word }
        let time =
            fencedMilliseconds.map { " for \(NumberFormat.duration(milliseconds: $0))" } ?? ""
        return word + TextLine(", ") + TextLine("fenced\(time)", .bad)
    }

    /// The line of the disk.
    private var diskLine: TextLine {
        guard let disk else { return TextLine("none") }
        return disk.isUp == false
            ? TextLine("down", .bad) + TextLine("; serving from memory and origins")
            : disk.line("entry", "entries")
    }

    /// Returns the line of requests since the start.
    private static func requestsLine(_ statistics: StatisticsReport) -> TextLine {
        let requests = statistics.requests
        guard requests.all > 0 else { return TextLine("none yet") }
        return TextLine(
            "\(NumberFormat.count(requests.all)) since the start; "
                + "hit ratio \(NumberFormat.percent(requests.hitRatio)) of requests, "
                + "\(NumberFormat.percent(statistics.bytes.hitRatio)) of bytes")
    }

    /// Returns the line of fetches from origins.
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

    /// Returns the line of the cluster.
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

    /// The line of the invalidation log.
    private var logLine: TextLine {
        let applied = NumberFormat.plural(invalidations.applied, "record") + " applied"
        guard invalidations.receiptsPending > 0 else { return TextLine(applied) }
        let pending = NumberFormat.plural(invalidations.receiptsPending, "purge")
        return TextLine(applied + "; ") + TextLine("\(pending) not confirmed by all", .warning)
    }
}

extension TierUsage {
    /// Returns the use as in `1.5 GiB of 2 GiB (75%), 3,000 entries`.
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

/// The status of several nodes as a table.
package enum StatusTable {
    /// The result of querying a node.
    package enum Row: Sendable {
        case received(StatusReport, StatisticsReport)
        case failed(String)
    }

    /// Returns a line for each node, in the order of the queries.
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

    /// Returns the cells of a node's row.
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

    /// Returns the cell of the disk.
    private static func disk(_ disk: TierUsage) -> TextLine {
        disk.isUp == false
            ? TextLine("down", .bad) : TextLine(NumberFormat.wholePercent(disk.share))
    }
}
