import Ground
import Testing
import Tiers

/// The hash of the key with this number.
private func hash(_ number: Int) -> UInt64 {
    var dice = SplitMix64(seed: UInt64(number))
    return dice.next()
}

private func rule(capacity: UInt64 = 1000, limit: Interval = .seconds(.max)) -> ReclaimPolicy {
    ReclaimPolicy(capacityBytes: capacity, expectedEntries: 100, ageLimit: limit)
}

/// What the disk keeps when it reclaims a segment.
@Suite struct ReclaimPolicyTests {
    @Test(
        "In the small queue, an entry used twice moves to the main queue with a count of zero",
        arguments: [
            (UInt8(0), ReclaimPolicy.ReclaimDecision.drop), (1, .drop),
            (2, .reinsert(count: 0)), (15, .reinsert(count: 0)),
        ])
    func smallQueue(count: UInt8, decision: ReclaimPolicy.ReclaimDecision) {
        let rule = rule()
        let found = rule.decision(count: count, idle: .zero, in: .small)
        #expect(found == decision)
    }

    @Test("In the main queue every access buys one more round, fifteen at most")
    func mainQueue() {
        let rule = rule()
        var count: UInt8 = 0
        for _ in 0..<1000 { count = ReclaimPolicy.incremented(count) }
        var rounds = 0
        while case .reinsert(let next) = rule.decision(count: count, idle: .zero, in: .main) {
            count = next
            rounds += 1
        }
        #expect(rounds == 15)
    }

    @Test("An entry unused for longer than the age limit expires, whatever its count")
    func ageLimit() {
        let rule = rule(limit: .seconds(60))
        let decisions = SegmentQueue.allCases.map { queue in
            [60, 61].map { rule.decision(count: 15, idle: .seconds($0), in: queue) }
        }
        #expect(decisions == [[.reinsert(count: 0), .expire], [.reinsert(count: 14), .expire]])
    }

    @Test("A dropped entry that returns starts in the main queue, once")
    func ghosts() {
        var rule = rule()
        let first = rule.queue(forNewEntry: hash(1))
        rule.recordDrop(hash(1), bytes: 10)
        let again = rule.queue(forNewEntry: hash(1))
        let third = rule.queue(forNewEntry: hash(1))
        #expect([first, again, third] == [.small, .main, .small])
    }

    @Test(
        "A drop is forgotten after drops of twice the capacity, whatever its size",
        arguments: [1000, 1 << 44] as [UInt64])
    func horizon(capacity: UInt64) {
        for (between, queue) in [(19, SegmentQueue.main), (21, .small)] {
            var rule = rule(capacity: capacity)
            rule.recordDrop(hash(0), bytes: 1)
            for number in 1...between { rule.recordDrop(hash(number), bytes: Int(capacity / 10)) }
            let found = rule.queue(forNewEntry: hash(0))
            #expect(found == queue)
        }
    }

    @Test("The number of ghosts is bounded by the number of entries")
    func bounded() {
        var rule = rule()
        let before = rule.ghostsMax
        rule.entryCountGrew(to: 100)
        let same = rule.ghostsMax
        rule.entryCountGrew(to: 1000)
        let after = rule.ghostsMax
        #expect([before, same, after] == [128, 128, 1024])
    }
}
