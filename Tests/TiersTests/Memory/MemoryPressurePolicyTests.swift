import Ground
import Testing
import Tiers

@Suite("The effective memory limit under pressure")
struct MemoryPressurePolicyTests {
    private let configured = 128 << 20

    private func bound(_ limitMiB: Int, working: Int, _ name: String = "group")
        -> SystemMemorySample.Bound
    {
        .init(name: name, limitBytes: limitMiB << 20, workingBytes: working << 20)
    }

    private func use(_ usedMiB: Int, filling: Int = 0, configured: Int = 128)
        -> MemoryPressurePolicy.Usage
    {
        .init(
            configuredBytes: configured << 20, usedBytes: usedMiB << 20,
            fetchBytes: filling << 20)
    }

    /// Evaluates the policy at a time in seconds with one bound; sizes are in MiB.
    private func look(
        _ rule: inout MemoryPressurePolicy, at second: Double = 0, used: Int = 128,
        filling: Int = 0,
        configured: Int = 128, working: Int, limit: Int = 256, stalled: Int? = nil
    ) -> MemoryPressurePolicy.Decision {
        rule.evaluate(
            now: Instant(nanoseconds: Int64(second * 1e9)),
            usage: use(used, filling: filling, configured: configured),
            sample: .init(bounds: [bound(limit, working: working)], stalledPermille: stalled))
    }

    @Test("With enough headroom the configured limit applies, and evaluations are rare")
    func roomEnough() {
        var rule = MemoryPressurePolicy()
        let decision = look(&rule, used: 0, working: 30, limit: 1_024)
        #expect(decision.limitBytes == configured && decision.reductionReason == nil)
        #expect(!decision.releasesFreeMemory && decision.nextEvaluationDelay == .seconds(1))
        #expect(!rule.isLimitReduced)
    }

    @Test("Without a bound the configured limit applies")
    func nothingRead() {
        var rule = MemoryPressurePolicy()
        _ = look(&rule, used: 0, working: 100, limit: 128)
        #expect(rule.isLimitReduced)
        let decision = rule.evaluate(
            now: .zero + .seconds(1), usage: use(0), sample: .init(bounds: []))
        #expect(decision.limitBytes == configured && !rule.isLimitReduced)
    }

    @Test("The limit falls before anything has to be evicted")
    func beforehand() {
        var rule = MemoryPressurePolicy()
        let decision = look(&rule, used: 40, working: 60, limit: 128)
        #expect(decision.limitBytes < 100 << 20 && decision.limitBytes > 40 << 20)
        #expect(decision.reductionReason == .lowHeadroom)
    }

    @Test("Near the group's limit entries are evicted at once, and free memory is released")
    func near() {
        var rule = MemoryPressurePolicy()
        let decision = look(&rule, working: 246)
        // 10 MiB of headroom where 32 are required.
        #expect(decision.limitBytes == (128 - 22) << 20)
        #expect(decision.reductionReason == .lowHeadroom && decision.releasesFreeMemory)
        #expect(decision.nextEvaluationDelay == .milliseconds(100))
    }

    @Test("The tightest of several bounds counts, each with a reserve of its own")
    func nearestBound() {
        let bounds = [
            bound(256, working: 100), bound(512, working: 500, "above"),
            bound(8_192, working: 2_000, "machine"),
        ]
        var rule = MemoryPressurePolicy()
        let decision = rule.evaluate(now: .zero, usage: use(128), sample: .init(bounds: bounds))
        // 12 MiB of headroom where 64 are required.
        #expect(decision.limitBytes == (128 - 52) << 20)
        #expect(SystemMemorySample(bounds: bounds).tightest?.name == "above")
    }

    @Test("Memory reserved by fetches for more than a second counts, a burst does not")
    func filling() {
        var rule = MemoryPressurePolicy()
        for (at, filling) in [(1.0, 0), (1.5, 60), (2, 60), (2.5, 0), (3, 30), (3.9, 40)] {
            let held = look(&rule, at: at, filling: filling, working: 230).limitBytes
            #expect(held == configured, "\(at)")
        }
        #expect(look(&rule, at: 4, filling: 30, working: 230).limitBytes < configured)
    }

    @Test("Evicted bytes have a second to take effect; afterwards more are evicted")
    func settling() {
        var rule = MemoryPressurePolicy()
        #expect(look(&rule, working: 246).limitBytes >> 20 == 106)
        for (at, working) in [(0.1, 246), (0.2, 240), (0.3, 247)] {
            let held = look(&rule, at: at, used: 106, working: working).limitBytes
            #expect(held >> 20 == 106, "\(at)")
        }
        // No effect within a second: the eviction did not help.
        #expect(look(&rule, at: 1.1, used: 106, working: 246).limitBytes >> 20 == 84)
    }

    @Test("While readers hold evicted bytes, no more is evicted")
    func readersHold() {
        var rule = MemoryPressurePolicy()
        _ = look(&rule, working: 246)
        #expect(look(&rule, at: 5, working: 246).limitBytes == 106 << 20)
    }

    @Test("The limit does not fall below the floor")
    func floor() {
        var rule = MemoryPressurePolicy()
        #expect(look(&rule, working: 900).limitBytes == MemoryPressurePolicy.floorBytes)
    }

    @Test("After ten calm seconds the limit grows each second; pressure restarts the ten seconds")
    func growth() {
        var rule = MemoryPressurePolicy()
        let least = look(&rule, used: 64, working: 246).limitBytes >> 20
        #expect(least < 64)
        let steps = [
            (1.0, 0), (10.9, 0), (11, 4), (11.5, 4), (12, 8), (12.5, 8), (13, 8), (22.9, 8),
            (23, 12),
        ]
        for (at, more) in steps {
            let held = look(&rule, at: at, used: 30, working: at == 12.5 ? 200 : 100).limitBytes
            #expect(held >> 20 == least + more, "\(at)")
        }
    }

    @Test("A new configured limit applies at once, as far as there is headroom")
    func configuredAnew() {
        var rule = MemoryPressurePolicy()
        #expect(look(&rule, used: 60, configured: 64, working: 200).limitBytes >> 20 == 64)
        #expect(look(&rule, used: 60, configured: 200, working: 200).limitBytes >> 20 < 100)
        #expect(rule.isLimitReduced)
        #expect(look(&rule, used: 32, configured: 32, working: 200).limitBytes >> 20 == 32)
        #expect(!rule.isLimitReduced)
    }

    @Test("Stalls reduce the limit by a 16th every five seconds, with headroom to half at most")
    func stalls() {
        var rule = MemoryPressurePolicy()
        var held: [Int] = []
        for tick in 0..<600 {
            let decision = look(
                &rule, at: Double(tick) / 10, used: held.last ?? 128, working: 400, limit: 4_096,
                stalled: 100)
            held.append(decision.limitBytes >> 20)
        }
        #expect(held[0] == 120 && held[49] == 120 && held[50] == 112)
        #expect(held.last == 64)
    }

    @Test("Short stalls reduce nothing, but the limit does not grow")
    func shortStalls() {
        var rule = MemoryPressurePolicy()
        let near = look(&rule, working: 246)
        for time in 1..<60 {
            let decision = look(
                &rule, at: Double(time), used: 100, working: 100, limit: 4_096, stalled: 60)
            #expect(decision.limitBytes == near.limitBytes)
        }
    }

    @Test("While headroom is short, free memory is released from time to time only")
    func givingBack() {
        var rule = MemoryPressurePolicy()
        var returned = 0
        for tick in 0..<400 {
            let decision = look(&rule, at: Double(tick) / 10, used: 108, working: 210)
            // Of 46 MiB of headroom, 22.5 are needed for the growth of 20.
            #expect(decision.limitBytes == configured)
            returned += decision.releasesFreeMemory ? 1 : 0
        }
        #expect(returned == 2)
    }

    @Test("A limit that cannot fit is reported at start, with one that would")
    func misfit() {
        let group = bound(256, working: 0)
        let machine = bound(8_192, working: 0, "machine")
        let reading = SystemMemorySample(bounds: [machine, group])
        let misfit = MemoryPressurePolicy.insufficientBound(220 << 20, in: reading)
        #expect(misfit?.bound == group)
        #expect(misfit?.fittingBytes == 184 << 20)
        #expect(MemoryPressurePolicy.insufficientBound(184 << 20, in: reading) == nil)
        #expect(MemoryPressurePolicy.insufficientBound(1 << 40, in: .init(bounds: [])) == nil)
        let least = MemoryPressurePolicy.insufficientBound(
            16 << 20, in: .init(bounds: [bound(1, working: 0)]))
        #expect(least?.fittingBytes == 0)
    }
}
