package import Ground

/// The policy for what the disk keeps: the queue of new entries, and the records of a reclaimed
/// segment that are re-inserted.
///
/// **Objective.** A miss on disk costs a transfer from the origin, so the policy minimises bytes
/// fetched from the origin. Size has no weight: a byte of a large entry is worth as much as one of
/// a small entry with the same request rate. The policy is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi,
/// SOSP 2023), in a log whose segments are reclaimed whole:
///
/// - New entries are written to the small queue. When their segment is reclaimed, those requested
///   twice or more move to the main queue and their count restarts; the others are dropped.
/// - In the main queue each access is worth one more round: a record is re-inserted with its count
///   reduced by one, and dropped at 0.
/// - *Ghosts* are the entries dropped within the last 2 × capacity of dropped bytes. An entry that
///   returns meanwhile starts in the main queue.
///
/// **Figures.** Byte miss ratio at 1, 5 and 10 % of the footprint (`nuthatch-sim eviction`), bytes
/// written per byte admitted, and the best of the policies in libCacheSim. Segments are those of
/// ``DiskPlan``, which has 22 on adaptsize_web because of its large objects; 64 for comparison:
///
/// | trace | segments | this | written | best other |
/// |---|---|---|---|---|
/// | adaptsize_web | 22 | .7035 .6301 .6032 | 1.13 1.07 1.05 | .6920 .6237 .6054 |
/// | adaptsize_web | 64 | .7514 .6450 .6104 | 1.11 1.06 1.03 | |
/// | cloudphysics_io | 64 | .9647 .9101 .8479 | 1.00 1.02 1.07 | .9651 .9349 .8541 |
/// | cache2k_web12_unit | 64 | .5761 .3495 .2774 | 1.49 1.87 1.76 | .5665 .3515 .2775 |
///
/// The number of segments itself has almost no cost. The 64 segments on adaptsize_web are so small
/// beside its objects (44 KB at 1 %) that a quarter of the requested bytes is in objects larger
/// than a segment. S3-FIFO on single objects that also skips those reaches .7503 .6433 .6135. More
/// than 64 bring no gain. With 16, the free one and two half-full ones are an eighth of the log,
/// which costs up to 1.8 points where all objects are small.
///
/// The constants lie in the middle of plateaus. Mean excess over the best other policy, in points,
/// with 64 segments and without adaptsize_web at 1 and 5 %: this −0.27. Small queue of a tenth
/// −0.27, of 15 % −0.28, of a twentieth −0.13, of a fifth 0. Promotion after one access −0.12 (and
/// 6 % more bytes written), after three −0.21. Ghosts of one capacity +0.45, of three 0. Counts to
/// 3 −0.11, to 255 −0.28. Re-inserting 4 bytes at most for a byte admitted −0.14, 2 +0.27, any
/// number −0.31.
///
/// With the segments of the plan, promotion after one access is 0.1 to 0.6 points better on mixes
/// of the web with large objects, up to 0.5 worse on cloudphysics_io and cache2k_web12_unit, and
/// writes up to 11 % more: it stays at two.
///
/// **Rejected.** Halving the count per round, or one round whatever the count: −0.08 and +0.18.
/// Restoring the count with which an entry was dropped, or that plus one round: no better, and up
/// to a tenth more written. When the credit is used up, keeping the most requested records instead
/// of the first: no different. Always dropping a quarter of a segment: 0.15 points worse.
package struct ReclaimPolicy: ~Copyable {
    private var ghosts: GhostList
    private let ageLimit: Interval
    private let horizon: UInt64
    /// Drops are counted in units of 2^`unitShift` bytes: ``GhostList`` has 40 bits for them.
    private let unitShift: UInt64
    private var droppedBytes: UInt64 = 0

    /// The value at which access counts saturate; they have four bits.
    package static let countMax: UInt8 = 15
    /// The access count below which a new entry is dropped.
    private static let promotedCountMin: UInt8 = 2
    /// The amount of dropped bytes, in capacities, after which a dropped entry is forgotten.
    private static let horizonCapacities: UInt64 = 2

    /// Creates a policy without ghosts.
    ///
    /// Ghosts take 8 bytes for each expected entry, rounded up to a power of two.
    ///
    /// - Parameters:
    ///   - capacityBytes: the capacity of all segments but the free one.
    ///   - expectedEntries: the number of entries to expect.
    ///   - ageLimit: the time without access after which an entry is not kept.
    package init(capacityBytes: UInt64, expectedEntries: Int, ageLimit: Interval) {
        var slots = 64
        while slots < expectedEntries { slots *= 2 }
        ghosts = GhostList(slotCount: slots)
        self.ageLimit = ageLimit
        var shift: UInt64 = 0
        while capacityBytes >> shift > 1 << 30 { shift += 1 }
        unitShift = shift
        horizon = (capacityBytes >> shift) * Self.horizonCapacities
    }

    /// The maximum number of ghosts.
    package var ghostsMax: Int { ghosts.slotCount }

    /// Returns `count` after one more access, at most ``countMax``.
    @inline(__always)
    package static func incremented(_ count: UInt8) -> UInt8 {
        min(countMax, count &+ 1)
    }

    /// Doubles the ghosts until their number reaches `count`, the number of entries in the log.
    package mutating func entryCountGrew(to count: Int) {
        while count > ghosts.slotCount { ghosts.grow() }
    }

    /// Returns the queue for a fetched entry, main if it has a ghost, and removes the ghost.
    ///
    /// `hash` is any 64 bits of the entry's digest, always the same ones.
    package mutating func queue(forNewEntry hash: UInt64) -> SegmentQueue {
        let ghost = ghosts.remove(
            hash, evictedBytes: droppedBytes >> unitShift, horizonBytes: horizon)
        return ghost == nil ? .small : .main
    }

    /// Decides about a record of a reclaimed segment.
    ///
    /// - Parameters:
    ///   - count: the number of accesses since the record was written plus the count it was written
    ///     with.
    ///   - idle: the time since its last access.
    ///   - queue: the queue of the segment.
    /// - Returns: `.expire` if `idle` exceeds the age limit; otherwise `.drop`, or `.reinsert` with
    ///   the access count to write.
    package func decision(count: UInt8, idle: Interval, in queue: SegmentQueue) -> ReclaimDecision {
        guard idle <= ageLimit else { return .expire }
        switch queue {
        case .small: return count < Self.promotedCountMin ? .drop : .reinsert(count: 0)
        case .main: return count == 0 ? .drop : .reinsert(count: min(count, Self.countMax) - 1)
        }
    }

    /// Adds a ghost for a record of `bytes` that was dropped, by decision or because the allocator
    /// had no space; the bytes count towards the age of all ghosts.
    package mutating func recordDrop(_ hash: UInt64, bytes: Int) {
        droppedBytes &+= UInt64(bytes)
        ghosts.insert(hash, frequency: 0, evictedBytes: droppedBytes >> unitShift)
    }
}

extension ReclaimPolicy {
    /// The action of the caller for a record of a reclaimed segment.
    package enum ReclaimDecision: Hashable, Sendable {
        /// Allocate space and write the record again, with this access count.
        case reinsert(count: UInt8)
        /// Remove the entry and report ``ReclaimPolicy/recordDrop(_:bytes:)``.
        case drop
        /// Remove the entry, which has exceeded the age limit, without a ghost.
        case expire
    }
}
