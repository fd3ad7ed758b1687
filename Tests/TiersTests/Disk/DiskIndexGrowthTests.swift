import Ground
import Testing
import Tiers
import Trials

/// The cost of an index of many entries in bytes and in steps.
@Suite struct DiskIndexGrowthTests {
    private static let bytesPerEntryMax = 48
    /// The number of entries from which the bytes for each are checked.
    private static let countMin = 1_000

    private static func digest(_ number: Int) -> EntryDigest {
        var dice = SplitMix64(seed: UInt64(number))
        return EntryDigest(first: dice.next(), second: dice.next())
    }

    private static func entry(_ number: Int) -> DiskEntry {
        DiskEntry(
            location: DiskLocation(
                segment: UInt16(truncatingIfNeeded: number >> 16),
                offsetUnits: UInt32(number & 0xFFFF)),
            lengthUnits: 1, lastAccess: UInt32(number))
    }

    @Test("A million insertions and removals take at most 48 bytes an entry and bounded work each")
    func millionEntries() {
        let entries = Trials.count(1_000_000)
        var index = DiskIndex(key0: 0x1234_5678_9ABC_DEF0, key1: 0x0FED_CBA9_8765_4321)
        var work = Work()
        for number in 0..<entries {
            let old = index.insert(Self.digest(number), Self.entry(number))
            work.note(index)
            if old != nil { Issue.record("entry \(number) was present before its insertion") }
        }
        #expect(work.bytesPerEntry <= Double(Self.bytesPerEntryMax))
        #expect(work.stepsMost <= 24 && work.movesMost == 0)
        #expect(work.steps <= 3 * UInt64(entries))

        for number in stride(from: 0, to: entries, by: 97) {
            let found = index.find(Self.digest(number))
            let absent = index.find(Self.digest(entries + number))
            #expect(found == Self.entry(number) && absent == nil)
        }

        work = Work(index)
        for step in 0..<entries {
            // The factor is prime to the count: each number once, far from the order of insertion.
            let number = step * 700_001 % entries
            let location = Self.entry(number).location
            let removed = index.remove(Self.digest(number), ifAt: location)
            work.note(index)
            if !removed { Issue.record("entry \(number) could not be removed") }
        }
        #expect(work.bytesPerEntry <= Double(Self.bytesPerEntryMax))
        #expect(work.stepsMost <= 48 && work.movesMost <= 1)
        #expect(work.steps <= 6 * UInt64(entries))
        let left = (index.count, index.allocatedBytes)
        #expect(left.0 == 0 && left.1 <= 4_096)
    }

    /// The greatest cost of a call so far.
    private struct Work {
        var stepsMost: UInt64 = 0
        var movesMost: UInt64 = 0
        /// The maximum at any count from ``countMin`` on.
        var bytesPerEntry = 0.0
        var steps: UInt64 = 0
        private var stepsBefore: UInt64 = 0
        private var movesBefore: UInt64 = 0

        init() {}

        init(_ index: borrowing DiskIndex) {
            stepsBefore = index.steps
            movesBefore = index.moves
        }

        mutating func note(_ index: borrowing DiskIndex) {
            steps += index.steps - stepsBefore
            stepsMost = max(stepsMost, index.steps - stepsBefore)
            movesMost = max(movesMost, index.moves - movesBefore)
            (stepsBefore, movesBefore) = (index.steps, index.moves)
            guard index.count >= countMin else { return }
            bytesPerEntry = max(bytesPerEntry, Double(index.allocatedBytes) / Double(index.count))
        }
    }

    @Test("Removing and inserting around any count allocates nothing")
    func swaying() {
        var index = DiskIndex(key0: 3, key1: 5)
        for number in 0..<20_000 {
            index.insert(Self.digest(number), Self.entry(number))
            guard number > Self.countMin else { continue }
            let full = index.allocatedBytes
            let removed = index.remove(Self.digest(number), ifAt: Self.entry(number).location)
            let less = index.allocatedBytes
            index.insert(Self.digest(number), Self.entry(number))
            let again = index.allocatedBytes
            #expect(removed && full == less && less == again)
            #expect(again <= Self.bytesPerEntryMax * (number + 1))
        }
    }

    @Test("Chosen digests with equal low bits gain nothing without the secret keys")
    func chosenDigests() {
        var index = DiskIndex(key0: 0x9E37_79B9_7F4A_7C15, key1: 0xC2B2_AE3D_27D4_EB4F)
        for number in 0..<50_000 {
            // 40 equal low bits in both halves.
            let digest = EntryDigest(first: UInt64(number) << 40, second: UInt64(number) << 40)
            let before = index.steps
            index.insert(digest, Self.entry(number))
            let steps = index.steps - before
            #expect(steps <= 48)
        }
        let steps = index.steps
        #expect(steps <= 3 * 50_000)
    }

    @Test("The order of a scan depends on the calls, not on the hash keys")
    func order() {
        let orders = [(1, 2), (3, 4)].map { (keys: (UInt64, UInt64)) in
            var index = DiskIndex(key0: keys.0, key1: keys.1)
            for number in 0..<3_000 { index.insert(Self.digest(number), Self.entry(number)) }
            for number in stride(from: 0, to: 3_000, by: 3) {
                _ = index.remove(Self.digest(number), ifAt: Self.entry(number).location)
            }
            var order: [EntryDigest] = []
            _ = index.forEach(below: .max, atMost: .max) { digest, _ in order.append(digest) }
            return order
        }
        #expect(orders[0].count == 2_000)
        #expect(orders[0] == orders[1])
    }

    @Test(
        "A scan in parts visits every entry that remains, whatever is inserted and removed",
        arguments: 0..<20)
    func walkInParts(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var index = DiskIndex(key0: dice.next(), key1: dice.next())
        for number in 0..<2_000 { index.insert(Self.digest(number), Self.entry(number)) }
        var met: Set<EntryDigest> = []
        var newcomers = 2_000
        var position = index.count
        while position > 0 {
            position = index.forEach(below: position, atMost: 1 + Int(dice.next() % 60)) {
                digest, _ in met.insert(digest)
            }
            for _ in 0..<dice.next() % 50 {
                // Numbers divisible by three may be removed; the others remain.
                let number = Int(dice.next() % 667) * 3
                _ = index.remove(Self.digest(number), ifAt: Self.entry(number).location)
            }
            for _ in 0..<dice.next() % 20 {
                index.insert(Self.digest(newcomers), Self.entry(newcomers))
                newcomers += 1
            }
        }
        let stayed = (0..<2_000).filter { $0 % 3 != 0 }
        #expect(stayed.allSatisfy { met.contains(Self.digest($0)) })
    }
}
