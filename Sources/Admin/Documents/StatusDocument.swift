package import Telemetry

/// The state of a node: `/admin/v1/status`.
package struct StatusDocument: Sendable {
    /// The state of the memory tier.
    package struct Memory: Sendable {
        /// The bytes in use.
        package var usedBytes: UInt64
        /// The capacity in bytes.
        package var limitBytes: UInt64
        /// The bytes of evicted entries that are still being sent.
        package var pinnedBytes: UInt64
        /// The number of entries.
        package var entries: UInt64

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            usedBytes = snapshot[.memoryUsedBytes]
            limitBytes = snapshot[.memoryLimitBytes]
            pinnedBytes = snapshot[.memoryPinnedBytes]
            entries = snapshot[.memoryEntries]
        }
    }

    /// The state of the disk tier.
    package struct Disk: Sendable {
        /// True if the disk is usable.
        package var isUp: Bool
        /// The bytes in use.
        package var usedBytes: UInt64
        /// The capacity in bytes.
        package var limitBytes: UInt64
        /// The number of entries.
        package var entries: UInt64

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            isUp = snapshot[.diskUp] == 1
            usedBytes = snapshot[.diskUsedBytes]
            limitBytes = snapshot[.diskLimitBytes]
            entries = snapshot[.diskEntries]
        }
    }

    /// The state of the cluster, as this node sees it.
    package struct Cluster: Sendable {
        /// The number of members alive.
        package var aliveCount: UInt64
        /// The number of voters.
        package var voterCount: UInt64
        /// The number of handoff offers queued or without a response.
        package var offersPending: UInt64
        /// True if the node hands off all its entries.
        package var isHandingOff: Bool
        /// True if the node looks for its cluster, and has not found it.
        package var isJoining: Bool

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            isJoining = snapshot[.joining] == 1
            aliveCount = snapshot[.membersAlive]
            voterCount = snapshot[.voters]
            offersPending = snapshot[.offersQueued] + snapshot[.offersUnanswered]
            isHandingOff = snapshot[.handoffActive] == 1
        }
    }

    /// The node id, 32 hexadecimal digits.
    package var node: String
    /// The id of the process, 32 hexadecimal digits.
    package var process: String
    /// The version of the program.
    package var version: String
    /// The time in milliseconds since the node started.
    package var uptimeMilliseconds: Int64
    /// The caller's role.
    package var role: AdminRole
    /// The node's readiness.
    package var readiness: Readiness
    /// The time in milliseconds since the fence closed; `nil` if it is open.
    package var fencedMilliseconds: Int64?
    /// The state of the memory tier.
    package var memory: Memory
    /// The state of the disk tier; `nil` without one.
    package var disk: Disk?
    /// The state of the cluster; `nil` for a node outside any cluster.
    package var cluster: Cluster?
    /// The configured seeds that do not reply while the node joins, each with the reason.
    package var unreachableSeeds: [String]
    /// The number of this node's purges that a voter has not confirmed.
    package var receiptsPending: Int
    private let snapshot: MetricsSnapshot
    /// The names of the node's sites.
    package var sites: [String]

    /// Creates the document from its parts; `missing` are the ``unreachableSeeds``.
    package init(
        node: String, process: String, version: String, uptimeMilliseconds: Int64,
        role: AdminRole, readiness: Readiness, fencedMilliseconds: Int64?,
        snapshot: MetricsSnapshot,
        hasDisk: Bool, isInCluster: Bool, unreachableSeeds: [String], receiptsPending: Int,
        sites: [String]
    ) {
        self.node = node
        self.process = process
        self.version = version
        self.uptimeMilliseconds = uptimeMilliseconds
        self.role = role
        self.readiness = readiness
        self.fencedMilliseconds = fencedMilliseconds
        memory = Memory(snapshot)
        disk = hasDisk ? Disk(snapshot) : nil
        cluster = isInCluster ? Cluster(snapshot) : nil
        self.unreachableSeeds = unreachableSeeds
        self.receiptsPending = receiptsPending
        self.snapshot = snapshot
        self.sites = sites
    }

    /// The document as JSON.
    package var json: JSON {
        [
            "node": .text(node), "process": .text(process), "version": .text(version),
            "uptime_ms": .number(uptimeMilliseconds), "role": .text(role.rawValue),
            "readiness": .text(readiness.rawValue), "fenced": .bool(fencedMilliseconds != nil),
            "fenced_ms": JSON(fencedMilliseconds), "memory": memory.json,
            "disk": disk?.json ?? .null, "cluster": cluster?.json ?? .null,
            "missing": JSON(unreachableSeeds),
            "invalidations": Self.invalidations(snapshot, pending: receiptsPending),
            "sites": JSON(sites),
        ]
    }

    static let schema = JSONSchema.object(
        .required("node", JSONSchema.id), .required("process", JSONSchema.id),
        .required("version", JSONSchema.string),
        .required("uptime_ms", JSONSchema.count),
        .required(
            "role", JSONSchema.enumeration(AdminRole.allCases.map(\.rawValue)),
            "What who asks may do"),
        .required("readiness", JSONSchema.enumeration(Readiness.allCases.map(\.rawValue))),
        .required("fenced", JSONSchema.boolean, "It cannot prove that nobody purged without it"),
        .required("fenced_ms", JSONSchema.nullable(JSONSchema.count), "For how long"),
        .required("memory", Memory.schema),
        .required("disk", JSONSchema.nullable(Disk.schema), "Null without a disk"),
        .required(
            "cluster", JSONSchema.nullable(Cluster.schema),
            "Null for a node that is in no cluster"),
        .required(
            "missing", JSONSchema.list(of: JSONSchema.string),
            "Places that do not answer a joining node"),
        .required("invalidations", invalidationsSchema),
        .required("sites", JSONSchema.list(of: JSONSchema.string)))
}

extension StatusDocument.Memory {
    /// The state as JSON.
    package var json: JSON {
        [
            "used_bytes": JSON(usedBytes), "limit_bytes": JSON(limitBytes),
            "pinned_bytes": JSON(pinnedBytes), "entries": JSON(entries),
        ]
    }

    static let schema = JSONSchema.object(
        .required("used_bytes", JSONSchema.count), .required("limit_bytes", JSONSchema.count),
        .required("pinned_bytes", JSONSchema.count, "Evicted, and still being sent"),
        .required("entries", JSONSchema.count))
}

extension StatusDocument.Disk {
    /// The state as JSON.
    package var json: JSON {
        [
            "up": .bool(isUp), "used_bytes": JSON(usedBytes), "limit_bytes": JSON(limitBytes),
            "entries": JSON(entries),
        ]
    }

    static let schema = JSONSchema.object(
        .required("up", JSONSchema.boolean), .required("used_bytes", JSONSchema.count),
        .required("limit_bytes", JSONSchema.count), .required("entries", JSONSchema.count))
}

extension StatusDocument.Cluster {
    /// The state as JSON.
    package var json: JSON {
        [
            "members_alive": JSON(aliveCount), "members_counted": JSON(voterCount),
            "offers_pending": JSON(offersPending), "handing_over": .bool(isHandingOff),
            "joining": .bool(isJoining),
        ]
    }

    static let schema = JSONSchema.object(
        .required("members_alive", JSONSchema.count),
        .required("members_counted", JSONSchema.count),
        .required(
            "offers_pending", JSONSchema.count, "Images that others are to take, or to answer for"),
        .required("handing_over", JSONSchema.boolean, "It hands over all that it holds, to go"),
        .required("joining", JSONSchema.boolean, "It looks for its cluster and has found none"))
}

extension StatusDocument {
    static func invalidations(_ snapshot: MetricsSnapshot, pending: Int) -> JSON {
        [
            "applied": JSON(snapshot[.invalidationsApplied]),
            "records": JSON(snapshot[.invalidationRecords]), "receipts_pending": JSON(pending),
        ]
    }

    static let invalidationsSchema = JSONSchema.object(
        .required("applied", JSONSchema.count), .required("records", JSONSchema.count),
        .required(
            "receipts_pending", JSONSchema.count, "Purges of this node that a counted member lacks")
    )
}
