import Ground

/// How far this node trusts its own eyes (Lifeguard §IV.A, "local health multiplier").
///
/// A node that misses answers which it should have had is slow or cut off itself; it then probes
/// less often and waits longer, so that it accuses others less.
struct LocalHealth: Hashable, Sendable {
    /// 0 is well.
    private(set) var score = 0
    let scoreMax: Int

    init(scoreMax: Int) {
        self.scoreMax = scoreMax
    }

    mutating func worsened(by steps: Int = 1) {
        score = min(scoreMax, score + steps)
    }

    mutating func improved() {
        score = max(0, score - 1)
    }

    func scaled(_ interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * Int64(score + 1))
    }
}
