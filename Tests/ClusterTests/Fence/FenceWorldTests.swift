import Cluster
import Ground
import Testing
import Trials

@Suite("The fence in a world with faults", .disabled(if: Trials.areFew))
struct FenceWorldTests {
    static func world(_ seed: UInt64, _ mutation: FenceWorld.Mutation? = nil) -> FenceWorld {
        var world = FenceWorld(seed: seed, count: 2 + Int(seed % 6), mutation: mutation)
        world.run(for: .seconds(80))
        return world
    }

    @Test("nobody serves what a purge covers later than the fence after it is durable")
    func guarantee() {
        let worlds = (1...8).map { Self.world($0) }
        for (index, world) in worlds.enumerated() {
            #expect(world.violations == [], "seed \(index + 1)")
            #expect(world.tally.freshReads > 0, "seed \(index + 1)")
        }
        // A world in which nothing happens proves nothing.
        let tallies = worlds.map(\.tally)
        #expect(tallies.map(\.leaves).reduce(0, +) > 0)
        #expect(tallies.map(\.crashes).reduce(0, +) > 10)
        #expect(tallies.map(\.pauses).reduce(0, +) > 10)
        #expect(tallies.map(\.partitions).reduce(0, +) > 40)
        #expect(worlds.map(\.truth.line.count).reduce(0, +) > 60)
        #expect(worlds.map(\.truth.decidedForgets).reduce(0, +) > 20)
        #expect(tallies.map(\.rivals).reduce(0, +) > 0)
        #expect(worlds.map(\.truth.durable.count).reduce(0, +) > 500)
    }

    @Test("two runs of one seed do the same")
    func repeatable() {
        let (first, second) = (Self.world(5), Self.world(5))
        #expect(first.tally == second.tally)
        #expect(first.truth.line == second.truth.line)
        #expect(first.truth.durable.map(\.purge) == second.truth.durable.map(\.purge))
    }

    @Test("what is done wrong on purpose is found", arguments: FenceWorld.Mutation.allCases)
    func mutations(mutation: FenceWorld.Mutation) {
        let seed = (80...140).first { !Self.world($0, mutation).violations.isEmpty }
        #expect(seed != nil)
    }
}
