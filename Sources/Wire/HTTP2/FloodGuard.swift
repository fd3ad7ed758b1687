package import Ground

/// How much unproductive work a peer may cause: a budget that frames spend which further no
/// request, and that time and productive work refill.
///
/// What each frame costs follows from what it makes this end do; the scale is that of PING, 2.
package struct FloodGuard: Hashable, Sendable {
    /// Units when the connection begins, and at most at any time.
    package let unitsMax: Int
    /// Units that come back each second.
    package let unitsPerSecond: Int
    private var units: Int
    /// Up to when time has refilled the budget; nil before the first frame.
    private var refilled: Instant?

    package init(unitsMax: Int, unitsPerSecond: Int) {
        self.unitsMax = unitsMax
        self.unitsPerSecond = unitsPerSecond
        units = unitsMax
    }

    /// Spends `cost` units; false if there are not so many: the peer floods.
    package mutating func spend(_ cost: Int, now: Instant) -> Bool {
        if units < cost { refill(now) }
        if refilled == nil { refilled = now }
        units -= cost
        return units >= 0
    }

    /// Takes note of work that furthered a request.
    package mutating func credit(_ gain: Int) {
        units = min(unitsMax, units + gain)
    }

    private mutating func refill(_ now: Instant) {
        guard let before = refilled, unitsPerSecond > 0 else { return }
        let elapsed = max(0, (now - before).nanoseconds)
        // Never more than fills the budget, so that the product fits.
        let whole = Interval.seconds(Int64(unitsMax / unitsPerSecond + 1)).nanoseconds
        let gain = Int(min(elapsed, whole)) / (1_000_000_000 / unitsPerSecond)
        units = min(unitsMax, units + gain)
        refilled = now
    }
}

/// What frames cost and what work earns.
extension FloodGuard {
    /// Bytes of DATA below which a frame that does not end its stream earns nothing.
    private static let dataBytesMin = 1024
    /// Of a stream that ended without a fault.
    static let streamGain = 4
    /// Of a stream that the peer or its faults ended (CVE-2023-44487, CVE-2025-8671).
    static let resetCost = 8

    /// The cost of a frame received; negative if it is a gain.
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

    /// What is earned by so many bytes of a body sent: as many WINDOW_UPDATE frames may follow as a
    /// careful client sends for them.
    static func gain(ofData bytes: Int) -> Int {
        bytes < dataBytesMin ? 0 : 1 + bytes / 2048
    }
}
