import Ground
import Testing
import Tiers
import Trials

/// The policy compared with a dictionary, over seeded random histories.
@Suite struct MemoryEvictionPolicyModelTests {
    private struct Entry {
        var hash: UInt64
        var cost: UInt32
    }

    @Test(
        "Index, ids and sums agree with a dictionary after any history",
        arguments: [
            // Few hashes: nearly all collide. Many: the table grows and shrinks.
            (seed: 1, hashes: 8, entries: 40), (seed: 2, hashes: 300, entries: 200),
            (seed: 3, hashes: 5_000, entries: 3_000), (seed: 4, hashes: 1_000_000, entries: 900),
        ] as [(seed: UInt64, hashes: UInt64, entries: Int)])
    func agrees(seed: UInt64, hashes: UInt64, entries: Int) throws {
        var dice = SplitMix64(seed: seed)
        var tier = MemoryEvictionPolicy(expectedEntries: 8)
        var model: [EntryID: Entry] = [:]
        var live: [EntryID] = []
        for step in 0..<Trials.count(60_000) {
            let hash = Self.spread(dice.next() % hashes)
            let pick = live.isEmpty ? nil : Int(dice.next() % UInt64(live.count))
            switch dice.next() % 16 {
            case 0..<6 where live.count < entries:
                let cost = UInt32(1 << (dice.next() % 22)) + UInt32(dice.next() % 1000)
                let id = tier.admit(hash: hash, cost: cost)
                #expect(model.updateValue(Entry(hash: hash, cost: cost), forKey: id) == nil)
                live.append(id)
            case 0..<8:
                let evicted = tier.evict()
                #expect((evicted == nil) == live.isEmpty)
                guard let evicted else { continue }
                let removed = model.removeValue(forKey: evicted.id)
                let entry = try #require(removed)
                #expect(entry.hash == evicted.hash && entry.cost == evicted.cost)
                live.removeAll { $0 == evicted.id }
            case 8:
                guard let pick else { continue }
                let id = live.remove(at: pick)
                let cost = tier.remove(id)
                #expect(model.removeValue(forKey: id)?.cost == cost)
            case 9:
                guard let victim = tier.nextVictim() else { continue }
                #expect(model[victim.id]?.hash == victim.hash)
                tier.requeue(victim)
            default:
                guard let pick else { continue }
                tier.recordHit(live[pick])
            }
            let sums = (tier.count, tier.bytes)
            #expect(sums.0 == model.count)
            if step % 64 == 0 {
                #expect(sums.1 == model.values.reduce(0) { $0 + UInt64($1.cost) })
                Self.expectCandidates(tier, hash, model)
            }
        }
        for hash in Set(model.values.map(\.hash)) { Self.expectCandidates(tier, hash, model) }
    }

    /// Distinct hashes whose lower halves collide in part, as in a large shard.
    private static func spread(_ number: UInt64) -> UInt64 {
        (number << 32 | number % 977) &* 0x1_0000_0001
    }

    private static func expectCandidates(
        _ tier: borrowing MemoryEvictionPolicy, _ hash: UInt64, _ model: [EntryID: Entry]
    ) {
        var found: [EntryID] = []
        var candidate = tier.first(hash)
        while let current = candidate {
            found.append(current.id)
            candidate = tier.next(after: current)
        }
        #expect(Set(found).count == found.count)
        #expect(found.allSatisfy { model[$0] != nil })
        let wanted = model.filter { $0.value.hash == hash }.keys
        #expect(Set(wanted).isSubset(of: found))
    }
}
