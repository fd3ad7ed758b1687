import Cluster
package import Ground
package import Telemetry

/// The uses of entries on one event loop: a sample of the hits, and touches for the disk tier and
/// peers.
package struct EntryUseRecorder {
    /// The most requested entries, from a sample of the hits.
    package private(set) var hot = SpaceSaving(countersMax: 256)
    /// A hit is in the sample if its number has none of these bits.
    private var sampleMask: UInt64 = 0
    /// Number of hits so far, wrapping.
    private var hitNumber: UInt64 = 0
    private var hitNumberAtTick: UInt64 = 0
    /// When ``hot`` was last decayed.
    private var decayedAt: Instant
    /// Touches not passed on yet; `nil` if they are not recorded.
    private var touches: TouchTable?
    /// When ``touches`` were last passed on.
    private var touchesTakenAt: Instant

    /// Creates a recorder without uses.
    package init(recordsTouches: Bool, now: Instant) {
        decayedAt = now
        touchesTakenAt = now
        touches = recordsTouches ? TouchTable(keysMax: TouchQueue.batchKeys) : nil
    }

    /// True if touches are recorded.
    @inline(__always)
    var recordsTouches: Bool { touches != nil }

    /// Counts a hit on the entry whose key has this keyed hash.
    @inline(__always)
    package mutating func countHit(_ hash: UInt64) {
        hitNumber &+= 1
        if hitNumber & sampleMask == 0 { hot.add(hash, times: sampleMask &+ 1) }
    }

    /// Records the use of an entry at `second` of the node's clock.
    ///
    /// - Returns: the touches to pass on because the table was full; `nil` otherwise.
    mutating func touch(_ digest: EntryDigest, at second: UInt32) -> [Touch]? {
        guard touches?.touch(digest, at: second) == false else { return nil }
        let full = touches?.take()
        _ = touches?.touch(digest, at: second)
        return full
    }

    /// Adapts the sampling rate to some hundred hits per tick, and decays the counts once a minute.
    package mutating func ticked(_ now: Instant) {
        let hits = hitNumber &- hitNumberAtTick
        hitNumberAtTick = hitNumber
        sampleMask = hits < 256 ? 0 : (1 << UInt64(64 - (hits / 128).leadingZeroBitCount)) - 1
        guard now - decayedAt >= .seconds(60) else { return }
        decayedAt = now
        hot.decay()
    }

    /// Returns the touches to pass on if those before were taken `interval` ago.
    mutating func takeTouches(every interval: Interval, now: Instant) -> [Touch]? {
        guard now - touchesTakenAt >= interval else { return nil }
        touchesTakenAt = now
        return takeTouches()
    }

    /// Returns the touches to pass on; `nil` if they are not recorded.
    mutating func takeTouches() -> [Touch]? { touches?.take() }
}
