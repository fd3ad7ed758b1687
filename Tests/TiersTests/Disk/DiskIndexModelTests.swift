import Ground
import Testing
import Tiers
import Trials

/// The index compared with a dictionary, over seeded random histories.
@Suite struct DiskIndexModelTests {
    /// The parameters of a random history of calls.
    struct History: Sendable {
        var seed: UInt64
        /// The number of distinct digests.
        var digests: UInt64
        /// The number of low bits that all digests share in both halves.
        var sharedBits: UInt64 = 0
        /// Insertions in 16 calls while the index grows, and removals while it shrinks.
        var eager = 8
    }

    private struct Run: ~Copyable {
        var history: History
        var dice: SplitMix64
        var index: DiskIndex
        var model: [EntryDigest: DiskEntry] = [:]
        var fills = true

        init(_ history: History) {
            self.history = history
            dice = SplitMix64(seed: history.seed)
            index = DiskIndex(key0: dice.next(), key1: dice.next())
        }
    }

    @Test(
        "The index agrees with a dictionary after any history",
        arguments: [
            History(seed: 1, digests: 1), History(seed: 2, digests: 3),
            History(seed: 3, digests: 70), History(seed: 4, digests: 1_500),
            History(seed: 5, digests: 40_000, eager: 14),
            History(seed: 6, digests: 5_000, sharedBits: 32),
        ])
    func agrees(history: History) {
        var run = Run(history)
        for step in 0..<Trials.count(120_000) {
            Self.step(&run)
            if step % 8_192 == 0 { Self.expectAgreement(run) }
        }
        Self.expectAgreement(run)
        Self.empty(&run)
        Self.expectAgreement(run)
    }

    private static func step(_ run: inout Run) {
        let share = Double(run.model.count) / Double(run.history.digests)
        if share > 0.9 { run.fills = false } else if share < 0.1 { run.fills = true }
        let digest = digest(&run)
        let entry = entry(&run.dice)
        let known = run.model[digest]
        // Half of the calls with a location use the right one.
        let location = run.dice.next() % 2 == 0 ? entry.location : known?.location ?? entry.location
        let isKnown = known != nil && known?.location == location
        let eager = run.dice.next() % 16 < run.history.eager
        switch run.dice.next() % 8 {
        case _ where eager && run.fills:
            let old = run.index.insert(digest, entry)
            #expect(old == run.model.updateValue(entry, forKey: digest))
        case _ where eager, 0:
            let removed = run.index.remove(digest, ifAt: location)
            #expect(removed == isKnown)
            if removed { run.model[digest] = nil }
        case 1:
            let count = UInt32(run.dice.next() % 100)
            let touched = run.index.touch(digest, count: count, at: entry.lastAccess)
            #expect(touched == (known != nil))
            guard let known else { break }
            run.model[digest]?.accessCount = UInt8(min(UInt32(known.accessCount) + count, 255))
            run.model[digest]?.lastAccess = max(known.lastAccess, entry.lastAccess)
        default:
            let found = run.index.find(digest)
            #expect(found == known)
        }
        let count = run.index.count
        #expect(count == run.model.count)
    }

    private static func digest(_ run: inout Run) -> EntryDigest {
        var dice = SplitMix64(seed: run.dice.next() % run.history.digests)
        return EntryDigest(
            first: dice.next() << run.history.sharedBits,
            second: dice.next() << run.history.sharedBits)
    }

    private static func entry(_ dice: inout SplitMix64) -> DiskEntry {
        DiskEntry(
            location: DiskLocation(
                segment: UInt16(truncatingIfNeeded: dice.next()),
                offsetUnits: UInt32(dice.next() >> 40)),
            lengthUnits: UInt32(dice.next() >> 40), lastAccess: UInt32(dice.next() >> 32),
            accessCount: UInt8(dice.next() >> 56),
            flags: DiskEntry.Flags(rawValue: UInt8(dice.next() >> 56)))
    }

    /// Removes everything, in an order that is not the index's own.
    private static func empty(_ run: inout Run) {
        var digests = run.model.keys.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
        digests.shuffle(using: &run.dice)
        for digest in digests {
            guard let entry = run.model.removeValue(forKey: digest) else { continue }
            let removed = run.index.remove(digest, ifAt: entry.location)
            #expect(removed)
        }
        let count = run.index.count
        #expect(count == 0)
    }

    private static func expectAgreement(_ run: borrowing Run) {
        var walked: [EntryDigest: DiskEntry] = [:]
        var walkedCount = 0
        _ = run.index.forEach(below: .max, atMost: .max) { digest, entry in
            walked[digest] = entry
            walkedCount += 1
        }
        let model = run.model
        #expect(walked == model && walkedCount == model.count)
        for (digest, entry) in model {
            let found = run.index.find(digest)
            #expect(found == entry)
        }
    }
}
