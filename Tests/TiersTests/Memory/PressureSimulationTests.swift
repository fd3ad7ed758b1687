import Ground
import Testing
import Tiers
import Trials

@Suite("A node in a container with little memory")
struct PressureSimulationTests {
    /// The headroom that the policy keeps in a container of 256 MiB; others may take half of it a
    /// second.
    private static let reserve = 32 << 20

    /// A node that fills its tier at a random rate beside other processes that grow and shrink.
    private func machine(seed: UInt64, dice: inout SplitMix64) -> PressureMachine {
        var plan = PressureMachine.Plan()
        plan.configuredBytes = Int.random(in: 16...400, using: &dice) << 20
        plan.fillRate = [1, 50, 500, 10_000].randomElement(using: &dice).map { $0 << 20 } ?? 0
        plan.freeingTicks = Int.random(in: 1...30, using: &dice)
        plan.lossPercent = Int.random(in: 0...12, using: &dice)
        plan.othersRate = Int.random(in: 1 << 20...Self.reserve / 2, using: &dice)
        plan.fillingBytesMax = Int.random(in: 0...80, using: &dice) << 20
        return PressureMachine(plan, seed: seed)
    }

    @Test(
        "The kernel does not kill while others take at most half a reserve a second",
        arguments: Trials.seeds(1...300))
    func neverKilled(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var machine = machine(seed: seed, dice: &dice)
        let floor = min(machine.plan.configuredBytes, MemoryPressurePolicy.floorBytes)
        let most = machine.plan.limitBytes - machine.plan.baseBytes - floor * 9 / 8 - Self.reserve
        for _ in 0..<30 {
            machine.othersGoal = Int.random(in: 0...most, using: &dice)
            machine.run(seconds: Int.random(in: 1...30, using: &dice))
            let within = (floor...machine.plan.configuredBytes).contains(machine.heldBytes)
            #expect(within, "\(machine.heldBytes)")
        }
        let wasKilled = machine.wasKilled
        #expect(!wasKilled, "\(machine.plan), peak \(machine.peakBytes)")
    }

    @Test("Without the policy the same nodes are killed")
    func theMachineKills() {
        var plan = PressureMachine.Plan()
        plan.fillRate = 0
        var machine = PressureMachine(plan)
        machine.othersGoal = 300 << 20
        machine.run(seconds: 60)
        let wasKilled = machine.wasKilled
        #expect(wasKilled)
    }

    @Test(
        "With constant other usage the limit changes at most once in ten minutes",
        arguments: Trials.seeds(1...100))
    func comesToRest(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var machine = machine(seed: seed, dice: &dice)
        machine.othersGoal = Int.random(in: 0...150, using: &dice) << 20
        machine.run(seconds: 600)
        let rest = machine.now
        machine.run(seconds: 600)
        let wasKilled = machine.wasKilled
        #expect(!wasKilled)
        let moved = machine.history.filter { $0.at > rest }
        #expect(moved.count <= 1, "\(moved.prefix(4))")
        let turns = machine.turns()
        #expect(turns <= 4, "\(turns)")
    }

    @Test(
        "After other processes leave, the configured limit applies again within a minute",
        arguments: Trials.seeds(1...100))
    func comesBack(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var machine = machine(seed: seed, dice: &dice)
        let fits =
            MemoryPressurePolicy.insufficientBound(
                machine.plan.configuredBytes + 32 << 20, in: .init(bounds: [machine.bound])) == nil
        guard fits, machine.plan.configuredBytes >= 40 << 20 else { return }
        machine.othersGoal = 200 << 20
        machine.run(seconds: 60)
        let configured = machine.plan.configuredBytes
        let pressed = machine.heldBytes
        #expect(pressed < configured)
        machine.othersGoal = 0
        machine.run(seconds: 200 << 20 / machine.plan.othersRate + 1)
        machine.run(seconds: 60)
        let (held, isYielding) = (machine.heldBytes, machine.rule.isLimitReduced)
        #expect(held == configured && !isYielding)
    }

    @Test(
        "Other usage that varies by less than half a reserve changes the limit at most once",
        arguments: Trials.seeds(1...20))
    func hysteresis(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var machine = machine(seed: seed, dice: &dice)
        machine.othersGoal = 100 << 20
        machine.run(seconds: 600)
        let rest = machine.now
        for _ in 0..<200 {
            machine.othersGoal = 100 << 20 + Int.random(in: -3...3, using: &dice) << 20
            machine.run(seconds: 5)
        }
        let moved = machine.history.filter { $0.at > rest }
        #expect(moved.count <= 1, "\(moved.prefix(4))")
    }
}
