import Cluster
import Ground
import Telemetry

/// The choice of the hits that count for the most requested entries: about a hundred per tick.
package struct HitSampler {
    /// A hit is in the sample if its number has none of these bits.
    private var mask: UInt64 = 0
    /// Number of hits so far, wrapping.
    private var number: UInt64 = 0
    private var numberAtTick: UInt64 = 0

    /// Creates a sampler that chooses every hit.
    package init() {}

    /// Counts a hit; returns the number of hits that it stands for, or `nil` if it is not in the
    /// sample.
    @inline(__always)
    package mutating func countHit() -> UInt64? {
        number &+= 1
        return number & mask == 0 ? mask &+ 1 : nil
    }

    /// Adapts the sampling rate to the hits since the last call.
    package mutating func ticked() {
        let hits = number &- numberAtTick
        numberAtTick = number
        mask = hits < 256 ? 0 : (1 << UInt64(64 - (hits / 128).leadingZeroBitCount)) - 1
    }
}

/// The uses of entries on one event loop: the most requested ones, and touches for the disk tier
/// and peers.
struct EntryUseRecorder {
    /// The most requested entries, from a sample of the hits.
    private(set) var hot = SpaceSaving(countersMax: 256)
    /// When ``hot`` was last decayed.
    private var decayedAt: Instant
    /// Touches not passed on yet; `nil` if they are not recorded.
    private var touches: TouchTable?
    /// When ``touches`` were last passed on.
    private var touchesTakenAt: Instant

    /// Creates a recorder without uses.
    init(recordsTouches: Bool, now: Instant) {
        decayedAt = now
        touchesTakenAt = now
        touches = recordsTouches ? TouchTable(keysMax: TouchQueue.batchKeys) : nil
    }

    /// True if touches are recorded.
    @inline(__always)
    var recordsTouches: Bool { touches != nil }

    /// Counts hits on the entry whose key has this keyed hash.
    @inline(__always)
    mutating func addHits(_ count: UInt64, on hash: UInt64) {
        hot.add(hash, times: count)
    }

    /// Decays the counts of hits once a minute.
    mutating func decayIfDue(_ now: Instant) {
        guard now - decayedAt >= .seconds(60) else { return }
        decayedAt = now
        hot.decay()
    }

    /// Records the use of an entry at `second` of the node's clock; returns the touches to pass on
    /// if the table was full, otherwise `nil`.
    mutating func touch(_ digest: EntryDigest, at second: UInt32) -> [Touch]? {
        guard touches?.touch(digest, at: second) == false else { return nil }
        let full = touches?.take()
        _ = touches?.touch(digest, at: second)
        return full
    }

    /// Takes the touches to pass on if the last call that took any was at least `interval` ago;
    /// otherwise returns `nil`.
    mutating func takeTouches(every interval: Interval, now: Instant) -> [Touch]? {
        guard now - touchesTakenAt >= interval else { return nil }
        touchesTakenAt = now
        return takeTouches()
    }

    /// Takes the touches recorded so far; `nil` if they are not recorded.
    mutating func takeTouches() -> [Touch]? { touches?.take() }
}
