import Cluster
import Ground
import Testing
import Trials

@Suite("Invariants of the invalidation log")
struct LogLawTests {
    /// All logs agree and have applied everything that survived.
    private func expectAgreement(_ world: LogWorld) {
        let positions = world.hosts.map(\.log.syncedPositions)
        #expect(positions.allSatisfy { $0 == positions[0] })
        #expect(world.hosts.allSatisfy { !$0.log.lags(behind: positions[0]) })
        #expect(world.hosts.allSatisfy { $0.contradictions.isEmpty })
    }

    @Test(
        "Despite loss, duplication and delay all nodes converge and apply each record once",
        arguments: Trials.seeds(0...19))
    func convergence(seed: UInt64) {
        var world = LogWorld(2 + Int(seed % 5), seed: seed)
        world.weather = .foul
        for _ in 0..<400 {
            let index = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            switch Int.random(in: 0..<10, using: &world.dice) {
            case 0: world.issue(at: index)
            case 1: world.sync(index)
            case 2: world.tick(.milliseconds(40))
            default: world.deliver()
            }
        }
        world.checkReceipts()
        world.calm()
        expectAgreement(world)
        world.checkReceipts()
        for host in world.hosts {
            #expect(Set(host.applied.keys) == Set(world.contents.keys))
            #expect(host.log.appliedCount == UInt64(world.contents.count))
            #expect(host.log.unsyncedBytes == 0)
        }
        for name in world.contents.keys {
            for host in world.hosts {
                let receipt = host.log.receipt(of: name)
                #expect(receipt?.isConfirmedByAll == true)
                #expect(receipt?.boundedAt != nil)
            }
        }
    }

    @Test(
        "A crash takes back no confirmation and reuses no number",
        arguments: Trials.seeds(100...119))
    func crashes(seed: UInt64) {
        var world = LogWorld(2 + Int(seed % 4), seed: seed)
        world.weather = seed.isMultiple(of: 2) ? .foul : .fair
        for _ in 0..<400 {
            let index = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            switch Int.random(in: 0..<40, using: &world.dice) {
            case 0: world.crash(index)
            case 1...5: world.issue(at: index)
            case 6...10: world.sync(index)
            case 11...12: world.tick(.milliseconds(300))
            default: world.deliver()
            }
            world.checkReceipts()
        }
        world.calm()
        expectAgreement(world)
        world.checkReceipts()
        // Every held record has the content with which it was issued.
        for host in world.hosts {
            for write in host.disk {
                guard let record = write.record else { continue }
                #expect(world.contents[record.id] == record.encodedContent)
            }
        }
    }

    @Test(
        "A node that replies to a query has applied what the requester had, or reports a lag",
        arguments: Trials.seeds(200...219))
    func questions(seed: UInt64) {
        var world = LogWorld(2 + Int(seed % 4), seed: seed)
        for _ in 0..<600 {
            let index = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            let other = world.hosts.indices.randomElement(using: &world.dice) ?? 0
            switch Int.random(in: 0..<60, using: &world.dice) {
            case 0 where index != other: world.connect(index, other)
            case 1: world.crash(index)
            case 2...9: world.issue(at: index, seed.isMultiple(of: 3) ? big(&world.dice) : nil)
            case 10...14: world.sync(index)
            case 15: world.tick(.milliseconds(300))
            case 16...35 where index != other: world.ask(index, of: other)
            default: world.deliver()
            }
        }
        #expect(world.answered.served > 0 && world.answered.behind > 0)
        world.calm()
        expectAgreement(world)
        // No node lags for ever, not even behind what was lost with its issuer.
        for (index, other) in pairs(world.hosts.count) {
            world.ask(index, of: other)
            #expect(
                world.hosts[index].log.unsentInvalidations(to: LogWorld.id(other))?.isEmpty == true)
        }
        world.calm()
        let behind = world.answered.behind
        for (index, other) in pairs(world.hosts.count) { world.ask(index, of: other) }
        world.calm()
        #expect(world.answered.behind == behind)
    }

    private func pairs(_ count: Int) -> [(Int, Int)] {
        (0..<count).flatMap { one in (0..<count).map { (one, $0) } }.filter { $0.0 != $0.1 }
    }

    /// So large that few fit into a query.
    private func big(_ dice: inout SplitMix64) -> Invalidation {
        let name = (0..<1_500).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
        return Invalidation(id: Array(name.prefix(16)), .purge(Purge(.soft, [.tag(name)])))
    }

    @Test("Records and receipts pass through other nodes when a pair is disconnected")
    func detour() {
        var world = LogWorld(4, seed: 1)
        for (one, other) in [(0, 2), (0, 3), (1, 3)] { world.disconnect(one, other) }
        for _ in 0..<20 { world.issue(at: 0) }
        world.settle()
        expectAgreement(world)
        for index in [1, 2, 3] {
            #expect(world.hosts[index].applied.count == 20)
        }
        world.checkReceipts()
    }
}
