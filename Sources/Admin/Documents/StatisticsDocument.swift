package import Telemetry

/// What has been counted since the start, with how things stand: `/admin/v1/statistics`, and each
/// event of `/admin/v1/events`.
package struct StatisticsDocument: Sendable {
    package var uptimeMilliseconds: Int64
    package var snapshot: Snapshot
    package var readiness: Readiness
    /// How long the fence has been closed; nil if it is open.
    package var fencedMilliseconds: Int64?
    package var hasDisk: Bool
    package var isInCluster: Bool
    package var receiptsPending: Int
    package var members: [MemberRow]

    package init(
        uptimeMilliseconds: Int64, snapshot: Snapshot, readiness: Readiness,
        fencedMilliseconds: Int64?, hasDisk: Bool, isInCluster: Bool, receiptsPending: Int,
        members: [MemberRow]
    ) {
        self.uptimeMilliseconds = uptimeMilliseconds
        self.snapshot = snapshot
        self.readiness = readiness
        self.fencedMilliseconds = fencedMilliseconds
        self.hasDisk = hasDisk
        self.isInCluster = isInCluster
        self.receiptsPending = receiptsPending
        self.members = members
    }

    /// What the outcomes are called here; those in ``latency`` are the first.
    private static let names: [(Outcome, String)] = [
        (.hit, "memory"), (.disk, "disk"), (.peer, "peer"), (.miss, "origin"),
        (.revalidated, "revalidated"), (.collapsed, "collapsed"), (.stale, "stale"),
        (.passed, "passed"), (.none, "none"),
    ]
    private static let timedNames = names.prefix(4)

    package var json: JSON {
        let outcomes = snapshot.outcomes
        func table(_ value: (OutcomeFigures.Row) -> UInt64) -> JSON {
            .object(Self.names.map { JSON.Member($1, JSON(value(outcomes[$0]))) })
        }
        let bounds = JSON.Member("bounds_us", .list(LatencyBuckets.bounds.map { JSON($0) }))
        let latency = Self.timedNames.map { outcome, name in
            JSON.Member(name, .list(outcomes[outcome].counts.map { JSON($0) }))
        }
        return [
            "at_ms": .number(uptimeMilliseconds), "requests": table(\.count),
            "bytes": table(\.bodyBytes),
            "origin": [
                "fetches_ok": JSON(snapshot[.originFetchesOK]),
                "fetches_failed": JSON(snapshot[.originFetchesFailed]),
                "received_bytes": JSON(snapshot[.originReceivedBytes]),
            ],
            "latency": .object([bounds] + latency), "readiness": .text(readiness.rawValue),
            "fenced": .bool(fencedMilliseconds != nil), "fenced_ms": JSON(fencedMilliseconds),
            "memory": StatusDocument.Memory(snapshot).json,
            "disk": hasDisk ? StatusDocument.Disk(snapshot).json : .null,
            "invalidations": StatusDocument.invalidations(snapshot, pending: receiptsPending),
            "cluster": isInCluster ? StatusDocument.Cluster(snapshot).json : .null,
            "members": .list(members.map(\.json)),
        ]
    }

    static let shape: JSON = {
        func table(_ names: [String], _ shape: JSON) -> JSON {
            [
                "type": "object", "required": JSON(names),
                "properties": .object(names.map { JSON.Member($0, shape) }),
                "additionalProperties": false,
            ]
        }
        let all = table(names.map(\.1), Shape.count)
        let buckets = LatencyBuckets.count
        let counts = Shape.list(of: Shape.count, count: buckets...buckets)
        let latency: JSON = [
            "type": "object", "required": JSON(["bounds_us"] + timedNames.map(\.1)),
            "properties": .object(
                [JSON.Member("bounds_us", Shape.list(of: Shape.count))]
                    + timedNames.map { JSON.Member($0.1, counts) }),
            "additionalProperties": false,
        ]
        return Shape.object(
            .has("at_ms", Shape.count, "Since the start"), .has("requests", all),
            .has("bytes", all),
            .has(
                "origin",
                Shape.object(
                    .has("fetches_ok", Shape.count), .has("fetches_failed", Shape.count),
                    .has("received_bytes", Shape.count))),
            .has("latency", latency),
            .has("readiness", Shape.choice(Readiness.allCases.map(\.rawValue))),
            .has("fenced", Shape.boolean), .has("fenced_ms", Shape.orNull(Shape.count)),
            .has("memory", StatusDocument.Memory.shape),
            .has("disk", Shape.orNull(StatusDocument.Disk.shape)),
            .has("invalidations", StatusDocument.invalidationsShape),
            .has("cluster", Shape.orNull(StatusDocument.Cluster.shape)),
            .has("members", Shape.list(of: MemberRow.rowShape)))
    }()
}
