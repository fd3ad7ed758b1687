package import Telemetry

/// How things stand with a node: `/admin/v1/status`.
package struct StatusDocument: Sendable {
    package struct Memory: Sendable {
        package var usedBytes: UInt64
        package var limitBytes: UInt64
        package var pinnedBytes: UInt64
        package var entries: UInt64

        package init(_ snapshot: MetricsSnapshot) {
            usedBytes = snapshot[.memoryUsedBytes]
            limitBytes = snapshot[.memoryLimitBytes]
            pinnedBytes = snapshot[.memoryPinnedBytes]
            entries = snapshot[.memoryEntries]
        }
    }

    package struct Disk: Sendable {
        package var isUp: Bool
        package var usedBytes: UInt64
        package var limitBytes: UInt64
        package var entries: UInt64

        package init(_ snapshot: MetricsSnapshot) {
            isUp = snapshot[.diskUp] == 1
            usedBytes = snapshot[.diskUsedBytes]
            limitBytes = snapshot[.diskLimitBytes]
            entries = snapshot[.diskEntries]
        }
    }

    package struct Cluster: Sendable {
        package var aliveCount: UInt64
        package var voterCount: UInt64
        /// Offers that are to be made, or are not answered.
        package var offersPending: UInt64
        /// It hands over everything that it holds.
        package var isHandingOff: Bool
        /// It looks for its cluster, and has found none.
        package var isJoining: Bool

        package init(_ snapshot: MetricsSnapshot) {
            isJoining = snapshot[.joining] == 1
            aliveCount = snapshot[.membersAlive]
            voterCount = snapshot[.voters]
            offersPending = snapshot[.offersQueued] + snapshot[.offersUnanswered]
            isHandingOff = snapshot[.handoffActive] == 1
        }
    }

    /// 32 hexadecimal digits, as is ``process``.
    package var node: String
    package var process: String
    package var version: String
    package var uptimeMilliseconds: Int64
    /// What who asks may do.
    package var role: AdminRole
    package var readiness: Readiness
    /// How long the fence has been closed; nil if it is open.
    package var fencedMilliseconds: Int64?
    package var memory: Memory
    /// Nil without a disk.
    package var disk: Disk?
    /// Nil for a node that is in no cluster.
    package var cluster: Cluster?
    /// Places that it was told of and that do not answer while it is joining, and why.
    package var unreachableSeeds: [String]
    /// How many of this node's purges somebody has not confirmed.
    package var receiptsPending: Int
    private let snapshot: MetricsSnapshot
    /// The names of its sites.
    package var sites: [String]

    package init(
        node: String, process: String, version: String, uptimeMilliseconds: Int64,
        role: AdminRole, readiness: Readiness, fencedMilliseconds: Int64?,
        snapshot: MetricsSnapshot,
        hasDisk: Bool, isInCluster: Bool, missing: [String], receiptsPending: Int,
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
        self.unreachableSeeds = missing
        self.receiptsPending = receiptsPending
        self.snapshot = snapshot
        self.sites = sites
    }

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
