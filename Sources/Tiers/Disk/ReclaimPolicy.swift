package import Ground

/// Decides what the disk keeps: which queue an entry begins in, and which records of a reclaimed
/// segment are re-inserted.
///
/// **What is maximised.** A miss on disk costs the origin a transfer, so bytes kept from the origin
/// count, and size is of no weight: a byte of a large entry is worth as much as one of a small one
/// that is asked for as often. That is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023), in a log
/// whose segments are reclaimed whole:
///
/// - Newcomers are written to the small queue. When their segment is reclaimed, those asked for
///   twice or more move to the main queue and begin to be counted anew; the others are dropped.
/// - In the main queue each access is worth one more round: a record is re-inserted with its count
///   less one, and dropped at 0.
/// - *Ghosts* are what was dropped within the last 2 × capacity of drops. An entry that returns
///   meanwhile begins in the main queue.
///
/// **Figures.** Byte miss ratio at 1, 5 and 10 % of the footprint (`nuthatch-sim eviction`), bytes
/// written per byte admitted, and the best of the policies in libCacheSim. Segments are those of
/// ``DiskPlan``, which are 22 on adaptsize_web, for its large objects; and 64 for comparison:
///
/// | trace | segments | this | written | best other |
/// |---|---|---|---|---|
/// | adaptsize_web | 22 | .7035 .6301 .6032 | 1.13 1.07 1.05 | .6920 .6237 .6054 |
/// | adaptsize_web | 64 | .7514 .6450 .6104 | 1.11 1.06 1.03 | |
/// | cloudphysics_io | 64 | .9647 .9101 .8479 | 1.00 1.02 1.07 | .9651 .9349 .8541 |
/// | cache2k_web12_unit | 64 | .5761 .3495 .2774 | 1.49 1.87 1.76 | .5665 .3515 .2775 |
///
/// Segments cost next to nothing as such: the 64 on adaptsize_web are so small beside its objects
/// (44 KB at 1 %) that a quarter of the bytes asked for is in objects which none of them holds.
/// S3-FIFO on single objects, passing those by too, comes to .7503 .6433 .6135. Beyond 64 there is
/// nothing to gain. With 16 the free one and two half full are an eighth of the log, which costs
/// up to 1.8 points where all objects are small.
///
/// The constants lie in the middle of plateaus. Mean excess over the best other, in points, with 64
/// segments and without adaptsize_web at 1 and 5 %: this −0.27. Small queue of a tenth −0.27, of
/// 15 % −0.28, of a twentieth −0.13, of a fifth 0. Promotion after one access −0.12 (and 6 % more
/// bytes written), after three −0.21. Ghosts of one capacity +0.45, of three 0. Counts to 3 −0.11,
/// to 255 −0.28. Re-inserting 4 bytes at most for a byte admitted −0.14, 2 +0.27, any number −0.31.
///
/// With segments of the plan, promotion after one access is 0.1 to 0.6 points better on mixes of
/// the web with large objects, up to 0.5 worse on cloudphysics_io and cache2k_web12_unit, and
/// writes up to 11 % more: it stays at two.
///
/// **Rejected.** Halving the count a round, or one round whatever the count: −0.08 and +0.18.
/// Returning with the count an entry was dropped with, or with one round more: no better, and up to
/// a tenth more written. Where credit runs out, keeping the most asked for instead of the first: no
/// different. Always dropping a quarter of a segment: 0.15 points worse.
package struct ReclaimPolicy: ~Copyable {
    private var ghosts: GhostList
    private let ageLimit: Interval
    private let horizon: UInt64
    /// Drops are counted in units of 2 ^ this many bytes: ``GhostList`` has 40 bits for them.
    private let unitShift: UInt64
    private var droppedBytes: UInt64 = 0

    /// Access counts are kept up to this; four bits hold them.
    package static let countMax: UInt8 = 15
    /// A newcomer asked for less often is dropped.
    private static let promotedCountMin: UInt8 = 2
    /// How much may be dropped, in capacities, before a drop is forgotten.
    private static let horizonCapacities: UInt64 = 2

    /// `capacityBytes` is what the log's segments hold, all but the free one.
    ///
    /// Ghosts take 8 bytes for each entry expected, rounded up to a power of two. What was not
    /// asked for within `ageLimit` is not kept.
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

    /// The bound on dropped entries that are remembered.
    package var ghostsMax: Int { ghosts.slotCount }

    /// `count` after one more access; it stays at ``countMax``.
    @inline(__always)
    package static func incremented(_ count: UInt8) -> UInt8 {
        min(countMax, count &+ 1)
    }

    /// The log holds `count` entries; beyond the bound on ghosts, that is doubled.
    package mutating func entryCountGrew(to count: Int) {
        while count > ghosts.slotCount { ghosts.grow() }
    }

    /// Which queue an entry that was fetched is written to; a ghost is then forgotten.
    ///
    /// `hash` is any 64 bits of the entry's digest, always the same ones.
    package mutating func queue(forNewEntry hash: UInt64) -> SegmentQueue {
        let ghost = ghosts.remove(
            hash, evictedBytes: droppedBytes >> unitShift, horizonBytes: horizon)
        return ghost == nil ? .small : .main
    }

    /// What becomes of a record of a reclaimed segment of `queue`.
    ///
    /// `count` is how often it was asked for since it was written, on top of the count it was
    /// written with; `idle` the time since it was last asked for.
    package func decision(count: UInt8, idle: Interval, in queue: SegmentQueue) -> ReclaimDecision {
        guard idle <= ageLimit else { return .expire }
        switch queue {
        case .small: return count < Self.promotedCountMin ? .drop : .reinsert(count: 0)
        case .main: return count == 0 ? .drop : .reinsert(count: min(count, Self.countMax) - 1)
        }
    }

    /// A record of `bytes` was dropped, be it by verdict or because the ledger had no place.
    package mutating func recordDrop(_ hash: UInt64, bytes: Int) {
        droppedBytes &+= UInt64(bytes)
        ghosts.insert(hash, frequency: 0, evictedBytes: droppedBytes >> unitShift)
    }
}

extension ReclaimPolicy {
    /// What the caller does with a record of a reclaimed segment.
    package enum ReclaimDecision: Hashable, Sendable {
        /// Asks the ledger for a place and writes it again, with this access count.
        case reinsert(count: UInt8)
        /// Forgets the entry and says ``ReclaimPolicy/dropped(_:bytes:)``.
        case drop
        /// Forgets the entry: nobody wants it.
        case expire
    }
}
