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
package struct ReclaimRule: ~Copyable {
    private var ghosts: GhostList
    private let ageLimit: Interval
    private let horizon: UInt64
    /// Drops are counted in units of this many bits less than bytes, for ``GhostList`` counts in 40.
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
    package static func touched(_ count: UInt8) -> UInt8 {
        min(countMax, count &+ 1)
    }

    /// The log holds `count` entries; beyond the bound on ghosts, that is doubled.
    package mutating func entriesGrew(to count: Int) {
        while count > ghosts.slotCount { ghosts.grow() }
    }

    /// Which queue an entry that was fetched is written to; a ghost is then forgotten.
    ///
    /// `hash` is any 64 bits of the entry's digest, always the same ones.
    package mutating func queue(forNewcomer hash: UInt64) -> SegmentQueue {
        let ghost = ghosts.recall(
            hash, evictedBytes: droppedBytes >> unitShift, horizonBytes: horizon)
        return ghost == nil ? .small : .main
    }

    /// What becomes of a record of a reclaimed segment of `queue`.
    ///
    /// `count` is how often it was asked for since it was written, on top of the count it was
    /// written with; `idle` the time since it was last asked for.
    package func verdict(count: UInt8, idle: Interval, in queue: SegmentQueue) -> Verdict {
        guard idle <= ageLimit else { return .expire }
        switch queue {
        case .small: return count < Self.promotedCountMin ? .drop : .keep(count: 0)
        case .main: return count == 0 ? .drop : .keep(count: min(count, Self.countMax) - 1)
        }
    }

    /// A record of `bytes` was dropped, be it by verdict or because the ledger had no place.
    package mutating func dropped(_ hash: UInt64, bytes: Int) {
        droppedBytes &+= UInt64(bytes)
        ghosts.remember(hash, frequency: 0, evictedBytes: droppedBytes >> unitShift)
    }
}

extension ReclaimRule {
    /// What the caller does with a record of a reclaimed segment.
    package enum Verdict: Hashable, Sendable {
        /// Asks the ledger for a place and writes it again, with this access count.
        case keep(count: UInt8)
        /// Forgets the entry and says ``ReclaimRule/dropped(_:bytes:)``.
        case drop
        /// Forgets the entry: nobody wants it.
        case expire
    }
}
