package import Admin

/// The use of memory or of the disk.
package protocol TierUsage {
    /// False if the tier cannot be used.
    var isUp: Bool { get }
    /// The bytes in use.
    var usedBytes: UInt64 { get }
    /// The limit in bytes.
    var limitBytes: UInt64 { get }
    /// The number of entries.
    var entries: UInt64 { get }
}

extension StatusDocument.Memory: TierUsage {
    /// True: there is always memory.
    package var isUp: Bool { true }
}

extension StatusDocument.Disk: TierUsage {}

extension TierUsage {
    /// The used share of the limit, from 0 to 1.
    package var share: Double {
        limitBytes == 0 ? 0 : min(1, Double(usedBytes) / Double(limitBytes))
    }

    /// The use as in `1.5 GiB of 2 GiB (75%), 3,000 entries`.
    fileprivate var line: TextLine {
        TextLine(
            "\(NumberFormat.bytes(usedBytes)) of \(NumberFormat.bytes(limitBytes)) "
                + "(\(NumberFormat.wholePercent(share))), "
                + NumberFormat.plural(entries, "entry", "entries"))
    }
}

/// The status of a node for people.
extension StatusDocument {
    /// Returns the lines of the status; `statistics` are of the same time, and `place` is the
    /// node's address.
    package func lines(_ statistics: StatisticsDocument, at place: String) -> [TextLine] {
        var pairs = KeyValueTable()
        pairs.append("node", "\(node) at \(place)")
        pairs.append(
            "version",
            "\(version), up \(NumberFormat.duration(milliseconds: uptimeMilliseconds))")
        pairs.append("health", health)
        pairs.append("memory", memoryLine)
        pairs.append("disk", diskLine)
        pairs.append("requests", Self.requestsLine(statistics))
        pairs.append("origin", Self.originLine(statistics))
        pairs.append("cluster", clusterLine(statistics.members))
        pairs.append("log", logLine)
        if !sites.isEmpty { pairs.append("sites", sites.joined(separator: ", ")) }
        pairs.append("role", role)
        return pairs.lines()
    }

    /// The readiness and whether the node is fenced.
    package var health: TextLine {
        let word = TextLine(readiness, readiness == "ready" ? .good : .warning)
        guard isFenced else { return word }
        let time =
            fencedMilliseconds.map { " for \(NumberFormat.duration(milliseconds: $0))" } ?? ""
        return word + TextLine(", ") + TextLine("fenced\(time)", .bad)
    }

    /// The line of the memory.
    private var memoryLine: TextLine {
        guard memory.pinnedBytes > 0 else { return memory.line }
        let pinned = NumberFormat.bytes(memory.pinnedBytes)
        return memory.line + TextLine(", \(pinned) evicted and still being sent")
    }

    /// The line of the disk.
    private var diskLine: TextLine {
        guard let disk else { return TextLine("none") }
        return disk.isUp
            ? disk.line : TextLine("down", .bad) + TextLine("; serving from memory and origins")
    }

    /// Returns the line of requests since the start.
    private static func requestsLine(_ statistics: StatisticsDocument) -> TextLine {
        let requests = statistics.requests
        guard requests.all > 0 else { return TextLine("none yet") }
        return TextLine(
            "\(NumberFormat.count(requests.all)) since the start; "
                + "hit ratio \(NumberFormat.percent(requests.hitRatio)) of requests, "
                + "\(NumberFormat.percent(statistics.bytes.hitRatio)) of bytes")
    }

    /// Returns the line of fetches from origins.
    private static func originLine(_ statistics: StatisticsDocument) -> TextLine {
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
        guard let cluster else { return TextLine("none") }
        if cluster.isJoining {
            let what =
                unreachableSeeds.isEmpty
                ? "more nodes are needed" : unreachableSeeds.joined(separator: "; ")
            return TextLine("looking for the cluster", .bad) + TextLine(": \(what)")
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
        line.append("; \(NumberFormat.plural(UInt64(cluster.voterCount), "voter"))")
        if let share = members.first(where: \.isSelf)?.primaryShare {
            line.append("; owns \(NumberFormat.percent(share)) of the keys")
        }
        if cluster.offersPending > 0 {
            line.append("; \(NumberFormat.plural(cluster.offersPending, "image")) to hand off")
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

/// The status of several nodes as a table.
package enum StatusTable {
    /// The result of querying a node.
    package enum Row: Sendable {
        case received(StatusDocument, StatisticsDocument)
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
        _ status: StatusDocument, _ statistics: StatisticsDocument
    ) -> [TextLine] {
        let alive = statistics.members.count { $0.state == "alive" }
        let all = statistics.members.count { $0.state != "left" }
        return [
            status.health,
            all == 0
                ? TextLine("–") : TextLine("\(alive)/\(all)", alive == all ? .plain : .warning),
            TextLine(NumberFormat.wholePercent(status.memory.share)),
            status.disk.map { disk in
                disk.isUp
                    ? TextLine(NumberFormat.wholePercent(disk.share)) : TextLine("down", .bad)
            } ?? TextLine("–"),
            TextLine(NumberFormat.count(statistics.requests.all)),
            TextLine(NumberFormat.percent(statistics.requests.hitRatio)),
            TextLine(NumberFormat.percent(statistics.bytes.hitRatio)),
            TextLine(
                String(
                    NumberFormat.duration(milliseconds: status.uptimeMilliseconds)
                        .split(separator: " ")[0])),
        ]
    }
}
