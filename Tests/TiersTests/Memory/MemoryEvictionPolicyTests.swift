import Ground
import Testing
import Tiers

/// The ids under `hash`, in the order of the candidates.
private func ids(_ tier: borrowing MemoryEvictionPolicy, _ hash: UInt64) -> [EntryID] {
    var found: [EntryID] = []
    var candidate = tier.first(hash)
    while let current = candidate {
        found.append(current.id)
        candidate = tier.next(after: current)
    }
    return found
}

@Suite struct MemoryEvictionPolicyTests {
    @Test("An admitted entry is found, an unknown hash is not")
    func findsAdmitted() {
        var tier = MemoryEvictionPolicy(expectedEntries: 4)
        let id = tier.admit(hash: 7, cost: 100)
        let found = (tier.first(7)?.id, tier.first(8)?.id)
        #expect(found.0 == id)
        #expect(found.1 == nil)
        let sums = (tier.count, tier.bytes)
        #expect(sums == (1, 100))
    }

    @Test("Entries with equal hashes are all candidates and are removed one by one")
    func equalHashes() {
        var tier = MemoryEvictionPolicy(expectedEntries: 4)
        let admitted = (0..<5).map { _ in tier.admit(hash: 42, cost: 10) }
        let all = ids(tier, 42)
        #expect(all == admitted)
        tier.remove(admitted[2])
        let rest = ids(tier, 42)
        #expect(Set(rest) == Set([admitted[0], admitted[1], admitted[3], admitted[4]]))
    }

    @Test("Colliding entries survive a removal among them, also across the table's end")
    func removalLeavesNoHole() {
        // The lower bits agree, so that all hash to one slot; 63 is the last of the smallest table.
        for home: UInt64 in [5, 62, 63] {
            for removed in 0..<12 {
                var tier = MemoryEvictionPolicy(expectedEntries: 4)
                let hashes = (0..<12).map { home + UInt64($0 % 3) + UInt64($0) << 12 }
                let admitted = hashes.map { tier.admit(hash: $0, cost: 1) }
                tier.remove(admitted[removed])
                for (index, hash) in hashes.enumerated() {
                    let found = ids(tier, hash)
                    #expect(found == (index == removed ? [] : [admitted[index]]))
                }
            }
        }
    }

    @Test("Growing from the smallest table loses no entry")
    func growth() {
        var tier = MemoryEvictionPolicy(expectedEntries: 0)
        var dice = SplitMix64(seed: 1)
        let hashes = (0..<20_000).map { _ in dice.next() }
        let admitted = hashes.map { tier.admit(hash: $0, cost: 3) }
        var lost = 0
        for (hash, id) in zip(hashes, admitted) where ids(tier, hash) != [id] { lost += 1 }
        #expect(lost == 0)
        let sums = (tier.count, tier.bytes)
        #expect(sums == (20_000, 60_000))
    }

    @Test("Evicting until the end returns every entry once, then nil; ids are reused")
    func evictsEverything() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        var dice = SplitMix64(seed: 2)
        var left: Set<EntryID> = []
        for _ in 0..<1000 {
            let id = tier.admit(hash: dice.next(), cost: UInt32(1 + dice.next() % 1_000_000))
            if dice.next() % 2 == 0 { tier.recordHit(id) }
            left.insert(id)
        }
        #expect(left.count == 1000)
        while let evicted = tier.evict() {
            #expect(left.remove(evicted.id) != nil)
        }
        #expect(left.isEmpty)
        let sums = (tier.count, tier.bytes)
        #expect(sums == (0, 0))
        let again = tier.admit(hash: 1, cost: 1)
        #expect(again.index < 1000)
    }

    @Test("A removal returns the cost and keeps the order of the others")
    func removal() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        let admitted = (0..<6).map { tier.admit(hash: UInt64($0), cost: 64) }
        // The first, the middle and the last of one queue.
        let costs = [0, 3, 5].map { tier.remove(admitted[$0]) }
        #expect(costs == [64, 64, 64])
        var order: [EntryID] = []
        while let evicted = tier.evict() { order.append(evicted.id) }
        #expect(order == [admitted[1], admitted[2], admitted[4]])
    }

    @Test("Hashes spread over all shards and never out of range", arguments: [1, 3, 8, 16])
    func shards(count: Int) {
        var dice = SplitMix64(seed: 3)
        var sizes = Array(repeating: 0, count: count)
        for _ in 0..<16_000 {
            sizes[MemoryEvictionPolicy.shard(of: dice.next(), among: count)] += 1
        }
        #expect(sizes.allSatisfy { abs($0 - 16_000 / count) < 200 })
        #expect(MemoryEvictionPolicy.shard(of: .max, among: count) == count - 1)
    }
}
