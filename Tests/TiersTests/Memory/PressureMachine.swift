import Ground
import Tiers

/// A simulated container with a memory limit, a node under a `MemoryPressurePolicy`, and other
/// processes; the kernel kills when the working set exceeds the limit.
struct PressureMachine {
    /// The parameters of a simulation.
    struct Plan {
        var limitBytes = 256 << 20
        var configuredBytes = 128 << 20
        /// Bytes that the node uses beside the tier.
        var baseBytes = 30 << 20
        /// Bytes a second by which the tier grows while there is headroom.
        var fillRate = 100 << 20
        /// Ticks for which the kernel still counts evicted bytes as used.
        var freeingTicks = 20
        /// The allocator's overhead on the tier's bytes, in percent.
        var lossPercent = 10
        /// Bytes a second by which the other processes' memory changes.
        var othersRate = 32 << 20
        /// The most bytes of the tier that fetches reserve; usually an eighth of it.
        ///
        /// They use memory that the process still has from the evictions for them.
        var fillingBytesMax = 4 << 20
    }

    let plan: Plan
    private(set) var rule = MemoryPressurePolicy()
    private(set) var now = Instant.zero
    private(set) var heldBytes: Int
    private(set) var usedBytes = 0
    private(set) var wasKilled = false
    /// Every effective limit and the time of its change.
    private(set) var history: [(at: Instant, bytes: Int)] = []
    private(set) var peakBytes = 0
    private(set) var othersBytes = 0
    /// The size towards which the other processes' memory moves.
    var othersGoal = 0
    var stalledPermille: Int?
    private var nextLook = Instant.zero
    /// Evicted bytes by the tick in which the kernel counts them as free.
    private var freeing: [Int]
    private var tick = 0
    private var dice: SplitMix64

    static let tickTime = Interval.milliseconds(10)

    init(_ plan: Plan, seed: UInt64 = 1) {
        self.plan = plan
        heldBytes = plan.configuredBytes
        freeing = Array(repeating: 0, count: plan.freeingTicks + 1)
        dice = SplitMix64(seed: seed)
    }

    var bound: SystemMemorySample.Bound {
        .init(name: "container", limitBytes: plan.limitBytes, workingBytes: workingBytes)
    }

    private var workingBytes: Int {
        let lost = usedBytes / 100 * plan.lossPercent
        return plan.baseBytes + usedBytes + lost + freeing.reduce(0, +) + othersBytes
    }

    /// Runs for `seconds`, or until the kernel kills.
    mutating func run(seconds: Int) {
        for _ in 0..<seconds * 100 where !wasKilled {
            advance()
        }
    }

    private mutating func advance() {
        now = now + Self.tickTime
        tick += 1
        freeing[tick % freeing.count] = 0
        let step = plan.othersRate / 100
        othersBytes += max(-step, min(step, othersGoal - othersBytes))
        usedBytes = max(usedBytes, min(heldBytes, usedBytes + plan.fillRate / 100))
        peakBytes = max(peakBytes, workingBytes)
        wasKilled = workingBytes > plan.limitBytes
        if now >= nextLook { look() }
    }

    private mutating func look() {
        let isBurst = Int.random(in: 0..<8, using: &dice) == 0
        let most = isBurst ? plan.fillingBytesMax : plan.fillingBytesMax / 8
        let filling = min(usedBytes, Int.random(in: 0...most, using: &dice))
        let decision = rule.evaluate(
            now: now,
            usage: .init(
                configuredBytes: plan.configuredBytes, usedBytes: usedBytes,
                fetchBytes: filling),
            sample: .init(bounds: [bound], stalledPermille: stalledPermille))
        if decision.limitBytes != heldBytes { history.append((now, decision.limitBytes)) }
        heldBytes = decision.limitBytes
        let evicted = max(0, usedBytes - heldBytes)
        usedBytes -= evicted
        freeing[(tick + plan.freeingTicks) % freeing.count] +=
            evicted / 100 * (100 + plan.lossPercent)
        nextLook = now + decision.nextEvaluationDelay
    }

    /// Number of changes of the limit's direction since `start`.
    func turns(since start: Instant = .zero) -> Int {
        let limits = [plan.configuredBytes] + history.filter { $0.at >= start }.map(\.bytes)
        let falls = zip(limits, limits.dropFirst()).map { $1 < $0 }
        return zip(falls, falls.dropFirst()).count { $0 != $1 }
    }
}
