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
