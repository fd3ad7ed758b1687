package import Telemetry

/// The state of a node: `/admin/v1/status`.
package struct StatusDocument: AdminDocument {
    /// The node id, 32 hexadecimal digits.
    package var node = ""
    /// The id of the process, 32 hexadecimal digits.
    package var process = ""
    /// The version of the program.
    package var version = ""
    /// The time in milliseconds since the node started.
    package var uptimeMilliseconds: Int64 = 0
    /// The caller's role: a raw value of ``AdminRole``, or one that only newer versions know.
    package var role = ""
    /// The node's readiness: a raw value of ``Readiness``, or one that only newer versions know.
    package var readiness = ""
    /// The time in milliseconds since the fence closed; `nil` if it is open.
    package var fencedMilliseconds: Int64?
    /// The state of the memory tier.
    package var memory = Memory()
    /// The state of the disk tier; `nil` without one.
    package var disk: Disk?
    /// The state of the cluster; `nil` for a node outside any cluster.
    package var cluster: Cluster?
    /// The configured seeds that do not reply while the node joins, each with the reason.
    package var unreachableSeeds: [String] = []
    /// The state of the invalidation log.
    package var invalidations = Invalidations()
    /// The names of the node's sites.
    package var sites: [String] = []

    /// Creates an empty document.
    package init() {}

    /// True if the fence is closed.
    package var isFenced: Bool { fencedMilliseconds != nil }

    /// The members.
    package static let fields: [Field] = [
        .required("node", \.node, as: .id),
        .required("process", \.process, as: .id),
        .required("version", \.version),
        .required("uptime_ms", \.uptimeMilliseconds),
        .required("role", \.role, "The role of the caller", as: .enumeration(AdminRole.self)),
        .required("readiness", \.readiness, as: .enumeration(Readiness.self)),
        .derived(
            "fenced", \.isFenced,
            "The fence is closed: the node may lack purges, and revalidates before it serves"),
        .nullable(
            "fenced_ms", \.fencedMilliseconds, "Time since the fence closed; null if it is open"),
        .required("memory", \.memory),
        .nullable("disk", \.disk, "Null for a node without a disk tier"),
        .nullable("cluster", \.cluster, "Null for a node outside any cluster"),
        .required(
            "missing", \.unreachableSeeds,
            "Seeds that do not reply to a joining node, with the reason",
            isLenient: true),
        .required("invalidations", \.invalidations),
        .required("sites", \.sites),
    ]
}

extension StatusDocument {
    /// The state of the memory tier.
    package struct Memory: AdminDocument {
        /// The bytes in use.
        package var usedBytes: UInt64 = 0
        /// The capacity in bytes.
        package var limitBytes: UInt64 = 0
        /// The bytes of removed entries that are still being sent: evicted, replaced or purged.
        package var pinnedBytes: UInt64 = 0
        /// The number of entries.
        package var entries: UInt64 = 0

        /// Creates an empty document.
        package init() {}

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            usedBytes = snapshot[.memoryUsedBytes]
            limitBytes = snapshot[.memoryLimitBytes]
            pinnedBytes = snapshot[.memoryPinnedBytes]
            entries = snapshot[.memoryEntries]
        }

        /// The members.
        package static let fields: [Field] = [
            .required("used_bytes", \.usedBytes),
            .required("limit_bytes", \.limitBytes),
            .required("pinned_bytes", \.pinnedBytes, "Evicted entries that are still being sent"),
            .required("entries", \.entries),
        ]
    }

    /// The state of the disk tier.
    package struct Disk: AdminDocument {
        /// True if the disk is usable.
        package var isUp = false
        /// The bytes in use.
        package var usedBytes: UInt64 = 0
        /// The capacity in bytes.
        package var limitBytes: UInt64 = 0
        /// The number of entries.
        package var entries: UInt64 = 0

        /// Creates an empty document.
        package init() {}

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            isUp = snapshot[.diskUp] == 1
            usedBytes = snapshot[.diskUsedBytes]
            limitBytes = snapshot[.diskLimitBytes]
            entries = snapshot[.diskEntries]
        }

        /// The members.
        package static let fields: [Field] = [
            .required("up", \.isUp),
            .required("used_bytes", \.usedBytes),
            .required("limit_bytes", \.limitBytes),
            .required("entries", \.entries),
        ]
    }

    /// The state of the cluster, as this node sees it.
    package struct Cluster: AdminDocument {
        /// The number of members alive.
        package var aliveCount: UInt64 = 0
        /// The number of voters.
        package var voterCount: UInt64 = 0
        /// The number of handoff offers queued or without a response.
        package var offersPending: UInt64 = 0
        /// True if the node hands off all its entries.
        package var isHandingOff = false
        /// True if the node looks for its cluster, and has not found it.
        package var isJoining = false

        /// Creates an empty document.
        package init() {}

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot) {
            isJoining = snapshot[.joining] == 1
            aliveCount = snapshot[.membersAlive]
            voterCount = snapshot[.voters]
            offersPending = snapshot[.offersQueued] + snapshot[.offersUnanswered]
            isHandingOff = snapshot[.handoffActive] == 1
        }

        /// The members.
        package static let fields: [Field] = [
            .required("members_alive", \.aliveCount),
            .required("members_counted", \.voterCount),
            .required(
                "offers_pending", \.offersPending, "Handoff offers that are queued or unanswered"
            ),
            .required("handing_over", \.isHandingOff, "The node is handing off all its entries"),
            .required(
                "joining", \.isJoining, "The node has not found its cluster yet", isLenient: true),
        ]
    }

    /// The state of the invalidation log.
    package struct Invalidations: AdminDocument {
        /// The number of invalidations applied.
        package var applied: UInt64 = 0
        /// The number of records held.
        package var records: UInt64 = 0
        /// The number of this node's purges that a voter has not confirmed.
        package var receiptsPending: UInt64 = 0

        /// Creates an empty document.
        package init() {}

        /// Reads the state from `snapshot`.
        package init(_ snapshot: MetricsSnapshot, receiptsPending: Int) {
            applied = snapshot[.invalidationsApplied]
            records = snapshot[.invalidationRecords]
            self.receiptsPending = UInt64(clamping: receiptsPending)
        }

        /// The members.
        package static let fields: [Field] = [
            .required("applied", \.applied),
            .required("records", \.records),
            .required(
                "receipts_pending", \.receiptsPending,
                "Purges issued by this node that a voter has not confirmed"),
        ]
    }
}
