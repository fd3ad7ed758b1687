import Ground
import Testing
import Tiers

@Suite("How much of the memory limit is held")
struct PressureRuleTests {
    private let configured = 128 << 20

    private func bound(_ limitMiB: Int, working: Int, _ name: String = "group")
        -> MemoryReading.Bound
    {
        .init(name: name, limitBytes: limitMiB << 20, workingBytes: working << 20)
    }

    private func use(_ usedMiB: Int, filling: Int = 0) -> PressureRule.Use {
        .init(
            configuredBytes: configured, usedBytes: usedMiB << 20, fillingBytes: filling << 20)
    }

    private func second(_ second: Double) -> Instant {
        Instant(nanoseconds: Int64(second * 1e9))
    }

    @Test("with room for all of it, all of it is held, and looks are rare")
    func roomEnough() {
        var rule = PressureRule()
        let decision = rule.looked(
            now: .zero, use: use(0), reading: .init(bounds: [bound(1_024, working: 30)]))
        #expect(decision.limitBytes == configured && decision.shrunk == nil)
        #expect(!decision.returnsFreeMemory && decision.nextLook == .seconds(1))
        #expect(!rule.isYielding)
    }

    @Test("where nothing can be read, all of it is held")
    func nothingRead() {
        var rule = PressureRule()
        _ = rule.looked(
            now: .zero, use: use(0), reading: .init(bounds: [bound(128, working: 100)]))
        #expect(rule.isYielding)
        let decision = rule.looked(now: second(1), use: use(0), reading: .init(bounds: []))
        #expect(decision.limitBytes == configured && !rule.isYielding)
    }

    @Test("what would not fit is not let in, before anything has to be evicted")
    func beforehand() {
        var rule = PressureRule()
        let decision = rule.looked(
            now: .zero, use: use(40), reading: .init(bounds: [bound(128, working: 60)]))
        #expect(decision.limitBytes < 100 << 20 && decision.limitBytes > 40 << 20)
        #expect(decision.shrunk == .room)
    }

    @Test("near the limit of the group entries go at once, and their memory is given back")
    func near() {
        var rule = PressureRule()
        let decision = rule.looked(
            now: .zero, use: use(128), reading: .init(bounds: [bound(256, working: 246)]))
        // 10 MiB are left where 32 should be.
        #expect(decision.limitBytes == (128 - 22) << 20)
        #expect(decision.shrunk == .room && decision.returnsFreeMemory)
        #expect(decision.nextLook == .milliseconds(100))
    }

    @Test("the nearest of several bounds counts, and each has a reserve of its own")
    func nearestBound() {
        let bounds = [
            bound(256, working: 100), bound(512, working: 500, "above"),
            bound(8_192, working: 2_000, "machine"),
        ]
        var rule = PressureRule()
        let decision = rule.looked(now: .zero, use: use(128), reading: .init(bounds: bounds))
        // 12 MiB are left where 64 should be.
        #expect(decision.limitBytes == (128 - 52) << 20)
        #expect(MemoryReading(bounds: bounds).tightest?.name == "above")
    }

    @Test("what fetches have reserved for more than a second is still to come, a burst is not")
    func filling() {
        var rule = PressureRule()
        func look(_ at: Double, filling: Int) -> Int {
            rule.looked(
                now: second(at), use: use(128, filling: filling),
                reading: .init(bounds: [bound(256, working: 230)])
            ).limitBytes
        }
        #expect(look(1, filling: 0) == configured)
        #expect(look(1.5, filling: 60) == configured)
        #expect(look(2, filling: 60) == configured)
        #expect(look(2.5, filling: 0) == configured)
        #expect(look(3, filling: 30) == configured)
        #expect(look(3.9, filling: 40) == configured)
        #expect(look(4, filling: 30) < configured)
    }

    @Test("evicted bytes are given a second to be seen, and what is lost besides is evicted too")
    func settling() {
        var rule = PressureRule()
        func look(_ at: Double, used: Int, working: Int) -> Int {
            rule.looked(
                now: second(at), use: use(used),
                reading: .init(bounds: [bound(256, working: working)])
            ).limitBytes >> 20
        }
        #expect(look(0, used: 128, working: 246) == 106)
        #expect(look(0.1, used: 106, working: 246) == 106)
        #expect(look(0.2, used: 106, working: 240) == 106)
        #expect(look(0.3, used: 106, working: 247) == 106)
        // Not seen within a second: it did not help.
        #expect(look(1.1, used: 106, working: 246) == 84)
    }

    @Test("while readers hold what was evicted, no more is evicted in vain")
    func readersHold() {
        var rule = PressureRule()
        let reading = MemoryReading(bounds: [bound(256, working: 246)])
        _ = rule.looked(now: .zero, use: use(128), reading: reading)
        let later = rule.looked(now: second(5), use: use(128), reading: reading)
        #expect(later.limitBytes == 106 << 20)
    }

    @Test("no less is held than the floor")
    func floor() {
        var rule = PressureRule()
        let decision = rule.looked(
            now: .zero, use: use(128), reading: .init(bounds: [bound(256, working: 900)]))
        #expect(decision.limitBytes == PressureRule.floorBytes)
    }

    @Test("after ten calm seconds the limit grows, a step a second; a break begins them anew")
    func growth() {
        var rule = PressureRule()
        func look(_ at: Double, used: Int = 30, working: Int = 100) -> Int {
            rule.looked(
                now: second(at), use: use(used),
                reading: .init(bounds: [bound(256, working: working)])
            ).limitBytes >> 20
        }
        let least = look(0, used: 64, working: 246)
        #expect(least < 64)
        #expect(look(1) == least)
        #expect(look(10.9) == least)
        #expect(look(11) == least + 4)
        #expect(look(11.5) == least + 4)
        #expect(look(12) == least + 8)
        #expect(look(12.5, working: 200) == least + 8)
        #expect(look(13) == least + 8)
        #expect(look(22.9) == least + 8)
        #expect(look(23) == least + 12)
    }

    @Test("a limit that is configured anew holds at once, up to what there is room for")
    func configuredAnew() {
        var rule = PressureRule()
        let reading = MemoryReading(bounds: [bound(256, working: 200)])
        func look(_ configuredMiB: Int, used: Int) -> Int {
            rule.looked(
                now: .zero,
                use: .init(
                    configuredBytes: configuredMiB << 20, usedBytes: used << 20, fillingBytes: 0),
                reading: reading
            ).limitBytes >> 20
        }
        #expect(look(64, used: 60) == 64)
        #expect(look(200, used: 60) < 100)
        #expect(rule.isYielding)
        #expect(look(32, used: 32) == 32)
        #expect(!rule.isYielding)
    }

    @Test("stalls take a 16th every five seconds, and with room left no more than half")
    func stalls() {
        var rule = PressureRule()
        var held: [Int] = []
        for tick in 0..<600 {
            let last = held.last ?? 128
            let decision = rule.looked(
                now: second(Double(tick) / 10), use: use(last),
                reading: .init(bounds: [bound(4_096, working: 400)], stalledPermille: 100))
            held.append(decision.limitBytes >> 20)
        }
        #expect(held[0] == 120 && held[49] == 120 && held[50] == 112)
        #expect(held.last == 64)
    }

    @Test("a stall that is not long enough changes nothing, but no limit grows under it")
    func shortStalls() {
        var rule = PressureRule()
        let near = rule.looked(
            now: .zero, use: use(128), reading: .init(bounds: [bound(256, working: 246)]))
        for time in 1..<60 {
            let decision = rule.looked(
                now: second(Double(time)), use: use(100),
                reading: .init(bounds: [bound(4_096, working: 100)], stalledPermille: 60))
            #expect(decision.limitBytes == near.limitBytes)
        }
    }

    @Test("free memory is given back now and then while room is short, not at each look")
    func givingBack() {
        var rule = PressureRule()
        var returned = 0
        for tick in 0..<400 {
            let decision = rule.looked(
                now: second(Double(tick) / 10), use: use(108),
                reading: .init(bounds: [bound(256, working: 210)]))
            // Of 46 MiB that are left, 22.5 are needed for the growth of 20.
            #expect(decision.limitBytes == configured)
            returned += decision.returnsFreeMemory ? 1 : 0
        }
        #expect(returned == 2)
    }

    @Test("a limit that cannot fit is seen at the start, with the one that would")
    func misfit() {
        let group = bound(256, working: 0)
        let machine = bound(8_192, working: 0, "machine")
        let reading = MemoryReading(bounds: [machine, group])
        let misfit = PressureRule.misfit(220 << 20, in: reading)
        #expect(misfit?.bound == group)
        #expect(misfit?.fittingBytes == 184 << 20)
        #expect(PressureRule.misfit(184 << 20, in: reading) == nil)
        #expect(PressureRule.misfit(1 << 40, in: .init(bounds: [])) == nil)
        let least = PressureRule.misfit(16 << 20, in: .init(bounds: [bound(1, working: 0)]))
        #expect(least?.fittingBytes == 0)
    }
}
