import Ground
import Testing
import Tiers

/// The hash of the key with this number.
private func hash(_ number: Int) -> UInt64 {
    var dice = SplitMix64(seed: UInt64(number))
    return dice.next()
}

/// The policy's preferences as stories.
@Suite struct MemoryEvictionPolicyGoldenTests {
    @Test("Of two new entries the larger is evicted first, in either order")
    func sizeCounts() {
        for largeFirst in [true, false] {
            var tier = MemoryEvictionPolicy(expectedEntries: 4)
            let costs: [UInt32] = largeFirst ? [8000, 1000] : [1000, 8000]
            for (key, cost) in costs.enumerated() {
                _ = tier.admit(hash: hash(key), cost: cost)
            }
            let evicted = tier.evict()
            #expect(evicted?.cost == 8000)
        }
    }

    @Test("Equal entries are evicted in order of arrival")
    func orderOfArrival() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        let admitted = (0..<10).map { tier.admit(hash: hash($0), cost: 5000) }
        var order: [EntryID] = []
        while let evicted = tier.evict() { order.append(evicted.id) }
        #expect(order == admitted)
    }

    @Test("An entry with a hit outlives equal entries, even later ones")
    func hitsCount() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        let asked = tier.admit(hash: hash(0), cost: 100)
        tier.recordHit(asked)
        for key in 1..<5 { _ = tier.admit(hash: hash(key), cost: 100) }
        let order = (0..<5).map { _ in tier.evict()?.id }
        #expect(order.last == asked)
    }

    @Test("A scan of 50 times the memory leaves nearly all requested entries in place")
    func scanResistance() {
        var tier = MemoryEvictionPolicy(expectedEntries: 1000)
        var popular: [EntryID] = []
        for key in 0..<500 {
            let id = tier.admit(hash: hash(key), cost: 1)
            for _ in 0..<3 { tier.recordHit(id) }
            popular.append(id)
        }
        var lost: Set<EntryID> = []
        for key in 10_000..<60_000 {
            while tier.count >= 1000 {
                guard let evicted = tier.evict() else { break }
                if popular.contains(evicted.id) { lost.insert(evicted.id) }
            }
            _ = tier.admit(hash: hash(key), cost: 1)
            // Each is requested once for every memory's worth of the scan.
            let asked = popular[key / 2 % 500]
            if key % 2 == 0, !lost.contains(asked) { tier.recordHit(asked) }
        }
        #expect(lost.isEmpty)
    }

    @Test("A formerly popular entry is evicted in the end")
    func agesOut() {
        var tier = MemoryEvictionPolicy(expectedEntries: 100)
        let popular = tier.admit(hash: hash(0), cost: 1)
        for _ in 0..<1024 { tier.recordHit(popular) }
        let frequency = tier.frequency(of: popular)
        #expect(frequency == 15)
        var turns = 0
        search: while turns < 100_000 {
            turns += 1
            _ = tier.admit(hash: hash(turns), cost: 1)
            while tier.count > 100 {
                if tier.evict()?.id == popular { break search }
            }
        }
        // Re-queued once with 15 × 5 times the weight of new entries, which lasts about 100 turns.
        #expect(7_000...16_000 ~= turns)
    }

    @Test("An evicted entry that returns soon regains its hits; a removed one does not")
    func ghosts() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        _ = tier.admit(hash: hash(1), cost: 100)
        let removed = tier.admit(hash: hash(2), cost: 100)
        _ = tier.admit(hash: hash(3), cost: 100)
        tier.recordHit(removed)
        tier.remove(removed)
        let evicted = tier.evict()
        #expect(evicted?.hash == hash(1))
        let returned = tier.admit(hash: hash(1), cost: 100)
        let replaced = tier.admit(hash: hash(2), cost: 100)
        let frequencies = (tier.frequency(of: returned), tier.frequency(of: replaced))
        #expect(frequencies == (2, 0))
        // Once only: recalling a ghost removes it.
        let twin = tier.admit(hash: hash(1), cost: 100)
        let frequency = tier.frequency(of: twin)
        #expect(frequency == 0)
    }

    @Test("An eviction is forgotten after evictions of twice the memory")
    func ghostHorizon() {
        for (between, remembered) in [(19, UInt8(2)), (21, 0)] {
            var tier = MemoryEvictionPolicy(expectedEntries: 64)
            for key in 0..<11 { _ = tier.admit(hash: hash(key), cost: 100) }
            let first = tier.evict()
            #expect(first?.hash == hash(0))
            for turn in 0..<between {
                _ = tier.admit(hash: hash(100 + turn), cost: 100)
                _ = tier.evict()
            }
            let returned = tier.admit(hash: hash(0), cost: 100)
            let frequency = tier.frequency(of: returned)
            #expect(frequency == remembered)
        }
    }

    @Test("A victim that is put back keeps its id, its hits and its order")
    func putBack() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        let spared = tier.admit(hash: hash(0), cost: 100)
        _ = tier.admit(hash: hash(1), cost: 100)
        for turn in 0..<20 {
            if turn == 3 { tier.recordHit(spared) }
            var victim = tier.nextVictim()
            if victim?.id != spared {
                // Also put back, so that the spared one's turn comes.
                if let other = victim { tier.requeue(other) }
                victim = tier.nextVictim()
            }
            guard let victim else { break }
            tier.requeue(victim)
        }
        let frequency = tier.frequency(of: spared)
        let sums = (tier.count, tier.bytes)
        let found = tier.first(hash(0))?.id
        #expect(frequency == 1)
        #expect(sums == (2, 200))
        #expect(found == spared)
    }

    @Test("Putting a victim back makes no ghost and counts as no eviction")
    func putBackIsNoEviction() {
        var tier = MemoryEvictionPolicy(expectedEntries: 64)
        for key in 0..<11 { _ = tier.admit(hash: hash(key), cost: 100) }
        let first = tier.evict()
        #expect(first?.hash == hash(0))
        for _ in 0..<50 {
            guard let victim = tier.nextVictim() else { break }
            tier.requeue(victim)
        }
        // Neither forgotten, although 5,000 bytes were spared, nor moved by them.
        let twin = tier.admit(hash: hash(1), cost: 100)
        let returned = tier.admit(hash: hash(0), cost: 100)
        let frequencies = (tier.frequency(of: twin), tier.frequency(of: returned))
        #expect(frequencies == (0, 2))
    }

    @Test("Ghosts are limited in number, and evictions do not raise the limit")
    func ghostBound() {
        var tier = MemoryEvictionPolicy(expectedEntries: 100)
        var dice = SplitMix64(seed: 9)
        let bound = tier.ghostsMax
        #expect(bound <= 300)
        let hashes = (0..<5_000).map { _ in dice.next() }
        for hash in hashes {
            _ = tier.admit(hash: hash, cost: 1)
            _ = tier.evict()
        }
        // An entry so large that nothing is beyond the horizon.
        _ = tier.admit(hash: hash(1), cost: 1_000_000)
        var remembered = 0
        for hash in hashes {
            let id = tier.admit(hash: hash, cost: 1)
            if tier.frequency(of: id) > 0 { remembered += 1 }
            tier.remove(id)
        }
        let boundAfter = tier.ghostsMax
        #expect(boundAfter == bound)
        #expect(bound / 2...bound ~= remembered)
    }

    @Test("If every entry was just hit, an eviction still ends after a bounded number of turns")
    func boundedTurns() {
        var tier = MemoryEvictionPolicy(expectedEntries: 5000)
        let admitted = (0..<5000).map { tier.admit(hash: hash($0), cost: 100) }
        for id in admitted { tier.recordHit(id) }
        let evicted = tier.evict()
        #expect(evicted?.id == admitted[1024])
    }

    @Test("A new entry worth less than what it would evict is refused without effect")
    func refusal() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        for key in 0..<10 { tier.recordHit(tier.admit(hash: hash(key), cost: 100)) }
        let large = tier.gain(hash: hash(10), cost: 10_000)
        let before = (tier.count, tier.bytes)
        let victim = tier.nextVictim(for: large)
        let after = (tier.count, tier.bytes)
        #expect(victim == nil)
        #expect(before == after)
        // A smaller one with the same frequency is worth it.
        let other = tier.gain(hash: hash(11), cost: 20)
        let gone = tier.nextVictim(for: other)
        #expect(gone?.hash == hash(0))
    }

    @Test("A refused entry is worth more when it returns, and only its frequency is kept")
    func refusedReturns() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        for key in 0..<10 { _ = tier.admit(hash: hash(key), cost: 100) }
        let first = tier.gain(hash: hash(10), cost: 200)
        tier.recordRejection(hash: hash(10))
        let second = tier.gain(hash: hash(10), cost: 200)
        tier.recordRejection(hash: hash(10))
        let third = tier.gain(hash: hash(10), cost: 200)
        #expect(first < second && second < third)
        let count = tier.count
        #expect(count == 10)
        let frequency = tier.frequency(of: tier.admit(hash: hash(10), cost: 200))
        #expect(frequency == 4)
    }

    @Test("Repeated refusals age entries that are no longer requested")
    func refusalsAge() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        let idle = tier.admit(hash: hash(0), cost: 100)
        for _ in 0..<4 { tier.recordHit(idle) }
        var refusals = 0
        while refusals < 1000 {
            let gain = tier.gain(hash: hash(1 + refusals), cost: 100)
            let victim = tier.nextVictim(for: gain)
            if victim?.id == idle { break }
            tier.recordRejection(hash: hash(1 + refusals))
            refusals += 1
        }
        // With four hits it is worth 20 new entries of its size.
        #expect(15...25 ~= refusals)
    }

    @Test("Values that wrap around keep their order")
    func wraps() {
        var tier = MemoryEvictionPolicy(expectedEntries: 16)
        var held: [EntryID] = []
        var highestStep: UInt64 = 1
        var turn = 0
        // Four keys cycle and are remembered, which raises the values until the next one wraps.
        while tier.inflation <= UInt64.max - highestStep, turn < 1_000_000 {
            held.append(tier.admit(hash: hash(turn % 4), cost: 1))
            turn += 1
            guard tier.count > 3 else { continue }
            let before = tier.inflation
            let evicted = tier.evict()
            held.removeAll { $0 == evicted?.id }
            highestStep = max(highestStep, tier.inflation &- before)
        }
        let popular = tier.admit(hash: hash(turn % 4), cost: 1)
        for id in held { tier.remove(id) }
        let newcomer = tier.admit(hash: hash(9), cost: 1)
        let before = tier.inflation
        let first = tier.evict()
        let second = tier.evict()
        let after = tier.inflation
        #expect(first?.id == newcomer)
        #expect(second?.id == popular)
        #expect(after < before)
        #expect(MemoryEvictionPolicy.isBehind(before, after))
    }
}
