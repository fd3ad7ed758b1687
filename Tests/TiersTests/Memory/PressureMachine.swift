import Ground
import Tiers

/// A container with a memory limit, a node whose memory tier follows a `MemoryPressurePolicy`, and
/// others who take and give memory; the kernel kills when the working set passes the limit.
struct PressureMachine {
    /// What the node and the others do.
    struct Plan {
        var limitBytes = 256 << 20
        var configuredBytes = 128 << 20
        /// What the node takes beside the tier.
        var baseBytes = 30 << 20
        /// Bytes a second by which the tier's contents grow while there is room.
        var fillRate = 100 << 20
        /// How long the kernel counts evicted bytes as taken, in ticks.
        var freeingTicks = 20
        /// What the allocator loses of the tier's bytes, in hundredths.
        var lossPercent = 10
        /// Bytes a second by which the others' memory moves.
        var othersRate = 32 << 20
        /// What of the tier's bytes is reserved for fetches, at most; usually an eighth of it.
        ///
        /// They take the place of what was evicted for them, which the process still has.
        var fillingBytesMax = 4 << 20
    }

    let plan: Plan
    private(set) var rule = MemoryPressurePolicy()
    private(set) var now = Instant.zero
    private(set) var heldBytes: Int
    private(set) var usedBytes = 0
    private(set) var wasKilled = false
    /// Every limit that was held, and since when.
    private(set) var history: [(at: Instant, bytes: Int)] = []
    private(set) var peakBytes = 0
    private(set) var othersBytes = 0
    /// Where the others' memory is going to.
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

    /// Lets `seconds` pass, or ends when the kernel has killed.
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

    /// How often the limit held turned from falling to rising or back since `start`.
    func turns(since start: Instant = .zero) -> Int {
        let limits = [plan.configuredBytes] + history.filter { $0.at >= start }.map(\.bytes)
        let falls = zip(limits, limits.dropFirst()).map { $1 < $0 }
        return zip(falls, falls.dropFirst()).count { $0 != $1 }
    }
}
