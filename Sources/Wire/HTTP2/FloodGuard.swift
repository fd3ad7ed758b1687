package import Ground

/// A budget for the unproductive work that a peer may cause.
///
/// Frames that do not further a request spend units; time and productive work restore them. A
/// frame's cost reflects the work that it causes, on the scale of PING, which costs 2.
package struct FloodGuard: Hashable, Sendable {
    /// The units at the beginning of a connection, and the maximum at any time.
    package let unitsMax: Int
    /// The units restored per second.
    package let unitsPerSecond: Int
    private var units: Int
    /// The time up to which units are restored; `nil` before the first frame.
    private var refilled: Instant?

    /// Creates a full budget.
    package init(unitsMax: Int, unitsPerSecond: Int) {
        self.unitsMax = unitsMax
        self.unitsPerSecond = unitsPerSecond
        units = unitsMax
    }

    /// Spends `cost` units; returns false if fewer were left, which means that the peer floods.
    package mutating func spend(_ cost: Int, now: Instant) -> Bool {
        if units < cost { refill(now) }
        if refilled == nil { refilled = now }
        units -= cost
        return units >= 0
    }

    /// Restores `gain` units for work that furthered a request.
    package mutating func credit(_ gain: Int) {
        units = min(unitsMax, units + gain)
    }

    /// Restores the units of the time since the last refill.
    private mutating func refill(_ now: Instant) {
        guard let before = refilled, unitsPerSecond > 0 else { return }
        let elapsed = max(0, (now - before).nanoseconds)
        // Limited to what fills the budget, so that the product cannot overflow.
        let whole = Interval.seconds(Int64(unitsMax / unitsPerSecond + 1)).nanoseconds
        let gain = Int(min(elapsed, whole)) / (1_000_000_000 / unitsPerSecond)
        units = min(unitsMax, units + gain)
        refilled = now
    }
}

/// The costs of frames, and the units restored by work.
extension FloodGuard {
    /// The minimum size in bytes of a DATA frame without END_STREAM that restores units.
    private static let dataBytesMin = 1024
    /// The units restored by a stream that ended without an error.
    static let streamGain = 4
    /// The cost of a stream that the peer reset, or that its errors ended (CVE-2023-44487,
    /// CVE-2025-8671).
    static let resetCost = 8

    /// Returns the cost of a received frame; negative if it restores units.
    static func cost(of head: FrameHeader) -> Int {
        switch head.type {
        case FrameHeader.data:
            if head.hasFlag(FrameHeader.endStreamOrAck) { return 0 }
            if head.length >= dataBytesMin { return -1 }
            return head.length == 0 ? 4 : 1
        case FrameHeader.headers:
            return head.length == 0 || !head.hasFlag(FrameHeader.endHeaders) ? 4 : 0
        case FrameHeader.rstStream: return resetCost
        case FrameHeader.settings: return head.hasFlag(FrameHeader.endStreamOrAck) ? 2 : 16
        case FrameHeader.windowUpdate: return 1
        default: return 2
        }
    }

    /// Returns the units restored by sending `bytes` of a body: they pay for as many WINDOW_UPDATE
    /// frames as a careful client sends for them.
    static func gain(ofData bytes: Int) -> Int {
        bytes < dataBytesMin ? 0 : 1 + bytes / 2048
    }
}
