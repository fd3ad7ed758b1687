import Cluster
import Ground
import Testing
import Trials

@Suite("Laws of the exchange of invalidations")
struct ExchangeLawTests {
    /// Trouble of every kind, for `steps` events.
    private func trouble(_ world: inout ExchangeWorld, steps: Int) {
        for _ in 0..<steps {
            let index = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            let other = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            switch Int.random(in: 0..<400, using: &world.dice) {
            case 0:
                if world.hosts[index].exchange == nil {
                    world.start(index)
                } else {
                    world.crash(index)
                }
            case 1 where index != other: world.disconnect(index, other)
            case 2...4 where index != other: world.connect(index, other)
            case 5:
                let pause = Int64.random(in: 10...5_000, using: &world.dice)
                world.hosts[index].pausedUntil = world.now + .milliseconds(pause)
            case 6...12: world.issue(at: index)
            case 13...60: world.sync(index)
            case 61...100: world.pass(.milliseconds(10))
            case 101...120 where index != other: world.ask(index, of: other)
            default: world.deliver()
            }
        }
    }

    private func calm(_ world: inout ExchangeWorld, for interval: Interval) {
        for index in world.hosts.indices {
            world.hosts[index].pausedUntil = .zero
            if world.hosts[index].exchange == nil { world.start(index) }
        }
        for one in world.hosts.indices {
            for other in 0..<one where !world.isConnected(one, other) {
                world.connect(one, other)
            }
        }
        let end = world.now + interval
        while world.now < end {
            while !world.isQuiet {
                world.deliverAll()
                for index in world.hosts.indices { world.sync(index) }
            }
            world.pass(.milliseconds(20))
        }
    }

    @Test(
        "current means that nothing is missing that was durable a fence ago; positions are synced",
        arguments: Trials.seeds(0...23))
    func laws(seed: UInt64) {
        var world = ExchangeWorld(2 + Int(seed % 4), seed: seed)
        trouble(&world, steps: 6_000)
        calm(&world, for: .seconds(12))
        #expect(world.currentChecks > 0 && world.served > 0)
        #expect(!world.truth.durable.isEmpty && world.truth.line.count > 1)
        // All is well again: everybody counts, is current and knows the same.
        let positions = world.hosts.compactMap(\.exchange?.positions)
        #expect(positions.allSatisfy { $0 == positions[0] })
        let ids = world.hosts.map(\.id)
        for host in world.hosts {
            #expect(host.exchange?.window.isCurrent(at: world.now) == true)
            #expect(host.exchange?.standing?.set.members == ids)
            #expect(host.exchange?.standing?.isSettled == true)
        }
        let served = world.served
        world.ask(0, of: 1)
        world.ask(1, of: 0)
        calm(&world, for: .milliseconds(1))
        // Nobody stays behind, not even behind what was lost with its issuer.
        #expect(world.served == served + 2)
        world.issue(at: 0)
        calm(&world, for: .seconds(2))
        let receipt = world.names.last.flatMap { world.hosts[1].exchange?.receipt(of: $0) }
        #expect(receipt?.isConfirmedByAll == true)
        #expect(receipt?.lines.map(\.node) == ids)
        #expect(receipt?.boundedAt != nil)
    }

    @Test("the same events give the same effects", arguments: 100..<103 as Range<UInt64>)
    func determinism(seed: UInt64) {
        let traces = (0..<2).map { _ in
            var world = ExchangeWorld(4, seed: seed)
            trouble(&world, steps: 4_000)
            return world.trace
        }
        #expect(traces[0] == traces[1] && traces[0].count > 100)
    }
}
