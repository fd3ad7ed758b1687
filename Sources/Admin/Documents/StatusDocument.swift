package import Telemetry

/// How things stand with a node: `/admin/v1/status`.
package struct StatusDocument: Sendable {
    package struct Memory: Sendable {
        package var usedBytes: UInt64
        package var limitBytes: UInt64
        package var pinnedBytes: UInt64
        package var entries: UInt64

        package init(_ snapshot: Snapshot) {
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

        package init(_ snapshot: Snapshot) {
            isUp = snapshot[.diskUp] == 1
            usedBytes = snapshot[.diskUsedBytes]
            limitBytes = snapshot[.diskLimitBytes]
            entries = snapshot[.diskEntries]
        }
    }

    package struct Cluster: Sendable {
        package var membersAlive: UInt64
        package var membersCounted: UInt64
        /// Offers that are to be made, or are not answered.
        package var offersPending: UInt64
        /// It hands over everything that it holds.
        package var isHandingOver: Bool
        /// It looks for its cluster, and has found none.
        package var isJoining: Bool

        package init(_ snapshot: Snapshot) {
            isJoining = snapshot[.joining] == 1
            membersAlive = snapshot[.membersAlive]
            membersCounted = snapshot[.membersCounted]
            offersPending = snapshot[.offersWaiting] + snapshot[.offersOpen]
            isHandingOver = snapshot[.handingOver] == 1
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
    package var missing: [String]
    /// How many of this node's purges somebody has not confirmed.
    package var receiptsPending: Int
    private let snapshot: Snapshot
    /// The names of its sites.
    package var sites: [String]

    package init(
        node: String, process: String, version: String, uptimeMilliseconds: Int64,
        role: AdminRole, readiness: Readiness, fencedMilliseconds: Int64?, snapshot: Snapshot,
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
        self.missing = missing
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
            "missing": JSON(missing),
            "invalidations": Self.invalidations(snapshot, pending: receiptsPending),
            "sites": JSON(sites),
        ]
    }

    static let shape = Shape.object(
        .has("node", Shape.id), .has("process", Shape.id), .has("version", Shape.string),
        .has("uptime_ms", Shape.count),
        .has("role", Shape.choice(AdminRole.allCases.map(\.rawValue)), "What who asks may do"),
        .has("readiness", Shape.choice(Readiness.allCases.map(\.rawValue))),
        .has("fenced", Shape.boolean, "It cannot prove that nobody purged without it"),
        .has("fenced_ms", Shape.orNull(Shape.count), "For how long"),
        .has("memory", Memory.shape),
        .has("disk", Shape.orNull(Disk.shape), "Null without a disk"),
        .has("cluster", Shape.orNull(Cluster.shape), "Null for a node that is in no cluster"),
        .has("missing", Shape.list(of: Shape.string), "Places that do not answer a joining node"),
        .has("invalidations", invalidationsShape),
        .has("sites", Shape.list(of: Shape.string)))
}

extension StatusDocument.Memory {
    package var json: JSON {
        [
            "used_bytes": JSON(usedBytes), "limit_bytes": JSON(limitBytes),
            "pinned_bytes": JSON(pinnedBytes), "entries": JSON(entries),
        ]
    }

    static let shape = Shape.object(
        .has("used_bytes", Shape.count), .has("limit_bytes", Shape.count),
        .has("pinned_bytes", Shape.count, "Evicted, and still being sent"),
        .has("entries", Shape.count))
}

extension StatusDocument.Disk {
    package var json: JSON {
        [
            "up": .bool(isUp), "used_bytes": JSON(usedBytes), "limit_bytes": JSON(limitBytes),
            "entries": JSON(entries),
        ]
    }

    static let shape = Shape.object(
        .has("up", Shape.boolean), .has("used_bytes", Shape.count),
        .has("limit_bytes", Shape.count), .has("entries", Shape.count))
}

extension StatusDocument.Cluster {
    package var json: JSON {
        [
            "members_alive": JSON(membersAlive), "members_counted": JSON(membersCounted),
            "offers_pending": JSON(offersPending), "handing_over": .bool(isHandingOver),
            "joining": .bool(isJoining),
        ]
    }

    static let shape = Shape.object(
        .has("members_alive", Shape.count), .has("members_counted", Shape.count),
        .has("offers_pending", Shape.count, "Images that others are to take, or to answer for"),
        .has("handing_over", Shape.boolean, "It hands over all that it holds, to go"),
        .has("joining", Shape.boolean, "It looks for its cluster and has found none"))
}

extension StatusDocument {
    static func invalidations(_ snapshot: Snapshot, pending: Int) -> JSON {
        [
            "applied": JSON(snapshot[.invalidationsApplied]),
            "records": JSON(snapshot[.invalidationRecords]), "receipts_pending": JSON(pending),
        ]
    }

    static let invalidationsShape = Shape.object(
        .has("applied", Shape.count), .has("records", Shape.count),
        .has("receipts_pending", Shape.count, "Purges of this node that a counted member lacks"))
}
