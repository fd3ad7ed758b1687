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

/// The documents of one node that `nuthatch status` shows.
package struct NodeReport: Sendable {
    /// The status.
    package var status: StatusDocument
    /// The statistics of the same time.
    package var statistics: StatisticsDocument
    /// The conditions; those that follow from the statistics if the node reports none.
    package var conditions: [Condition]
    /// The origins.
    package var origins: [OriginDocument] = []
    /// The sites.
    package var sites: [SiteDocument] = []
    /// The certificates.
    package var certificates: [CertificateDocument] = []

    /// Creates the report of a node; `conditions` is `nil` for a node that reports none.
    package init(
        _ status: StatusDocument, _ statistics: StatisticsDocument,
        conditions: ConditionsDocument? = nil
    ) {
        self.status = status
        self.statistics = statistics
        self.conditions = conditions?.conditions ?? statistics.basicConditions
    }

    /// Returns the lines of the report: the conditions, the figures, and the tables of origins,
    /// sites and members.
    ///
    /// - Parameters:
    ///   - place: the address of the node.
    ///   - columnsMax: the width of a line; `nil` for no limit.
    /// - Returns: the lines.
    package func lines(at place: String, columnsMax: Int?) -> [TextLine] {
        let tables = [
            OriginDocument.lines(origins, columnsMax: columnsMax, isBrief: true),
            SiteDocument.lines(sites, columnsMax: columnsMax, isBrief: true),
            MemberDocument.reportLines(statistics.members, columnsMax: columnsMax),
        ]
        return ConditionReport([(place, conditions)]).lines(columnsMax: columnsMax)
            + [TextLine()] + figures(at: place).lines()
            + tables.filter { !$0.isEmpty }.flatMap { [TextLine()] + $0 }
    }

    /// Returns the figures by name.
    private func figures(at place: String) -> KeyValueTable {
        var pairs = KeyValueTable()
        status.append(to: &pairs, statistics, at: place)
        if let total = statistics.members.totalLine { pairs.append("total", total) }
        if let responses = responsesLine { pairs.append("status", responses) }
        if let errors = errorsLine { pairs.append("errors", errors) }
        if !certificates.isEmpty { pairs.append("certs", certificatesLine) }
        return pairs
    }

    /// The line of responses by status class; `nil` without responses.
    private var responsesLine: TextLine? {
        let counts = statistics.responses
        guard counts.all > 0 else { return nil }
        let classes: [(String, UInt64, TextStyle)] = [
            ("1xx", counts.informational, .plain), ("2xx", counts.successful, .plain),
            ("3xx", counts.redirected, .plain), ("4xx", counts.clientErrors, .plain),
            ("5xx", counts.serverErrors, .bad),
        ]
        var line = TextLine()
        for (name, count, style) in classes where count > 0 {
            if line.columns > 0 { line.append(", ") }
            let share = NumberFormat.percent(counts.share(count))
            line.append("\(name) \(NumberFormat.count(count)) (\(share))", style)
        }
        return line
    }

    /// The line of errors by reason; `nil` without errors.
    private var errorsLine: TextLine? {
        let parts = [
            ("refused: ", statistics.errors.refused.text),
            ("failed fetches: ", statistics.errors.origin.text),
        ].filter { !$0.1.isEmpty }
        guard !parts.isEmpty else { return nil }
        return TextLine(parts.map { $0.0 + $0.1 }.joined(separator: "; "), .warning)
    }

    /// The line of certificates, the first to expire first.
    private var certificatesLine: TextLine {
        var line = TextLine()
        for certificate in certificates.sorted(by: { $0.daysLeft < $1.daysLeft }) {
            if line.columns > 0 { line.append(", ") }
            let days = certificate.daysLeft
            line.append(certificate.names.first ?? certificate.file)
            line.append(
                days < 0 ? " expired" : " \(NumberFormat.plural(UInt64(days), "day"))",
                certificate.style)
        }
        return line
    }
}

/// The status of a node for people.
extension StatusDocument {
    /// Appends the figures of the status; `statistics` are of the same time, and `place` is the
    /// node's address.
    fileprivate func append(
        to pairs: inout KeyValueTable, _ statistics: StatisticsDocument, at place: String
    ) {
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
        case received(NodeReport)
        case failed(String)

        /// Returns the conditions of the node at `place`.
        fileprivate func conditions(at place: String) -> [Condition] {
            switch self {
            case .received(let report): report.conditions
            case .failed(let why): [Condition(unansweredBy: place, why)]
            }
        }
    }

    /// Returns the conditions of all nodes.
    package static func conditions(_ rows: [(place: String, row: Row)]) -> ConditionReport {
        ConditionReport(rows.map { ($0.place, $0.row.conditions(at: $0.place)) })
    }

    /// Returns the conditions of all nodes, and a line for each node, in the order of the queries.
    package static func lines(
        _ rows: [(place: String, row: Row)], columnsMax: Int?
    ) -> [TextLine] {
        var table = Table([
            .flexible("AT"), .left("NODE"), .flexible("HEALTH"), .left("ALIVE"), .right("MEM"),
            .right("DISK"), .right("REQUESTS"), .right("HITS"), .right("5XX"), .right("UP"),
        ])
        for (place, row) in rows {
            switch row {
            case .received(let report):
                table.append(
                    [TextLine(place), TextLine(String(report.status.node.prefix(8)))]
                        + cells(report))
            case .failed(let why):
                table.append(
                    [TextLine(place), TextLine("–"), TextLine(why, .bad)]
                        + Array(repeating: TextLine("–"), count: 7))
            }
        }
        return conditions(rows).lines(columnsMax: columnsMax) + [TextLine()]
            + table.lines(columnsMax: columnsMax)
    }

    /// Returns the cells of a node's row.
    private static func cells(_ report: NodeReport) -> [TextLine] {
        let (status, statistics) = (report.status, report.statistics)
        let alive = statistics.members.count { $0.state == "alive" }
        let all = statistics.members.count { $0.state != "left" }
        let responses = statistics.responses
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
            TextLine(
                NumberFormat.percent(responses.share(responses.serverErrors)),
                responses.serverErrors > 0 ? .bad : .plain),
            TextLine(
                String(
                    NumberFormat.duration(milliseconds: status.uptimeMilliseconds)
                        .split(separator: " ")[0])),
        ]
    }
}
