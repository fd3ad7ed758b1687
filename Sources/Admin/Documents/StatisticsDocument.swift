package import Telemetry

/// The counters since the start, with the node's state: `/admin/v1/statistics`, and each event of
/// `/admin/v1/events`.
package struct StatisticsDocument: Sendable {
    /// The time in milliseconds since the node started.
    package var uptimeMilliseconds: Int64
    /// The metrics.
    package var snapshot: MetricsSnapshot
    /// The node's readiness.
    package var readiness: Readiness
    /// The time in milliseconds since the fence closed; `nil` if it is open.
    package var fencedMilliseconds: Int64?
    /// True if the node has a disk tier.
    package var hasDisk: Bool
    /// True if the node is a member of a cluster.
    package var isInCluster: Bool
    /// The number of this node's purges that a voter has not confirmed.
    package var receiptsPending: Int
    /// The members of the cluster.
    package var members: [MemberDocument]

    /// Creates the document from its parts.
    package init(
        uptimeMilliseconds: Int64, snapshot: MetricsSnapshot, readiness: Readiness,
        fencedMilliseconds: Int64?, hasDisk: Bool, isInCluster: Bool, receiptsPending: Int,
        members: [MemberDocument]
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

    /// The names of the outcomes in the document; the first four also have latencies.
    private static let names: [(CacheOutcome, String)] = [
        (.hit, "memory"), (.disk, "disk"), (.peer, "peer"), (.miss, "origin"),
        (.revalidated, "revalidated"), (.collapsed, "collapsed"), (.stale, "stale"),
        (.bypassed, "passed"), (.generated, "none"),
    ]
    private static let timedNames = names.prefix(4)

    /// The document as JSON.
    package var json: JSON {
        let outcomes = snapshot.outcomes
        func table(_ value: (OutcomeSnapshot.Row) -> UInt64) -> JSON {
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

    static let schema: JSON = {
        func table(_ names: [String], _ shape: JSON) -> JSON {
            [
                "type": "object", "required": JSON(names),
                "properties": .object(names.map { JSON.Member($0, shape) }),
                "additionalProperties": false,
            ]
        }
        let all = table(names.map(\.1), JSONSchema.count)
        let buckets = LatencyBuckets.count
        let counts = JSONSchema.list(of: JSONSchema.count, count: buckets...buckets)
        let latency: JSON = [
            "type": "object", "required": JSON(["bounds_us"] + timedNames.map(\.1)),
            "properties": .object(
                [JSON.Member("bounds_us", JSONSchema.list(of: JSONSchema.count))]
                    + timedNames.map { JSON.Member($0.1, counts) }),
            "additionalProperties": false,
        ]
        return JSONSchema.object(
            .required("at_ms", JSONSchema.count, "Since the start"), .required("requests", all),
            .required("bytes", all),
            .required(
                "origin",
                JSONSchema.object(
                    .required("fetches_ok", JSONSchema.count),
                    .required("fetches_failed", JSONSchema.count),
                    .required("received_bytes", JSONSchema.count))),
            .required("latency", latency),
            .required("readiness", JSONSchema.enumeration(Readiness.allCases.map(\.rawValue))),
            .required("fenced", JSONSchema.boolean),
            .required("fenced_ms", JSONSchema.nullable(JSONSchema.count)),
            .required("memory", StatusDocument.Memory.schema),
            .required("disk", JSONSchema.nullable(StatusDocument.Disk.schema)),
            .required("invalidations", StatusDocument.invalidationsSchema),
            .required("cluster", JSONSchema.nullable(StatusDocument.Cluster.schema)),
            .required("members", JSONSchema.list(of: MemberDocument.itemSchema)))
    }()
}
