import Ground
import Store
import Testing

@Suite("Memory shares of sites")
struct MemoryShareTests {
    private let entries = Entries(limitBytes: 8 << 20)
    private let share = MemoryShare(percent: 25)

    @Test("A site's entries stay within its share, whatever is stored and replaced")
    func limitHolds() {
        var dice = SplitMix64(seed: 3)
        for _ in 0..<3_000 {
            let name = "\(Int.random(in: 0..<400, using: &dice))"
            let bytes = Int.random(in: 0...60_000, using: &dice)
            entries.put(name, bytes: bytes, share: share)
            #expect(share.usedBytes <= 2 << 20)
        }
        #expect(share.usedBytes > 3 << 19)
        #expect(share.usedBytes == entries.store.account.indexedBytes)
    }

    @Test("A site at its share evicts none of the others' entries, nor they its own")
    func othersStay() {
        for number in 0..<40 { entries.put("other\(number)", bytes: 60_000) }
        for number in 0..<400 { entries.put("own\(number)", bytes: 60_000, share: share) }
        let others = (0..<40).count { entries.find("other\($0)") != nil }
        #expect(others == 40)
        #expect(entries.find("own399") != nil)
        #expect(entries.find("own0") == nil)
    }

    @Test("Requested entries stay; the others are evicted in order of arrival")
    func clock() {
        for number in 0..<20 { entries.put("\(number)", bytes: 60_000, share: share) }
        for number in 0..<5 { #expect(entries.find("\(number)") != nil) }
        for number in 100..<125 { entries.put("\(number)", bytes: 60_000, share: share) }
        for number in 0..<5 { #expect(entries.find("\(number)") != nil, "\(number)") }
        #expect((5..<15).allSatisfy { entries.find("\($0)") == nil })
    }

    @Test("Formerly popular entries are evicted when they are no longer requested")
    func cooling() {
        for number in 0..<10 {
            entries.put("\(number)", bytes: 60_000, share: share)
            for _ in 0..<40 { _ = entries.find("\(number)") }
        }
        for number in 100..<200 { entries.put("\(number)", bytes: 60_000, share: share) }
        #expect((0..<10).allSatisfy { entries.find("\($0)") == nil })
    }

    @Test("An entry larger than the share is refused and evicts nothing")
    func tooLarge() {
        entries.put("small", bytes: 1000, share: share)
        #expect(entries.put("large", bytes: 3 << 20, share: share) == nil)
        #expect(entries.find("large") == nil)
        #expect(entries.find("small") != nil)
    }

    @Test("Inserting an entry repeatedly does not lengthen the search for a victim")
    func again() throws {
        let kept = try #require(entries.put("kept", bytes: 1_000, share: share))
        for _ in 0..<200 {
            entries.store.remove(kept)
            entries.store.insert(kept)
        }
        #expect(entries.find("kept") != nil)
    }

    @Test("Entries that leave in another way are no longer counted")
    func removal() throws {
        let first = try #require(entries.put("a", bytes: 1000, share: share))
        let bytes = share.usedBytes
        let second = try #require(entries.put("a", bytes: 1000, share: share))
        #expect(share.usedBytes == bytes)
        #expect(!entries.store.remove(first))
        entries.store.remove(second)
        #expect(share.usedBytes == 0)
        entries.put("a", bytes: 1000, share: share)
        for number in 0..<1000 { entries.put("other\(number)", bytes: 60_000) }
        #expect(entries.find("a") == nil || share.usedBytes == bytes)
        entries.store.applyLimits(limitBytes: 0, entriesMax: 0)
        #expect(share.usedBytes == 0)
    }

    @Test("A changed share applies to later stores")
    func changed() {
        for number in 0..<30 { entries.put("\(number)", bytes: 60_000, share: share) }
        share.setPercent(10)
        entries.put("next", bytes: 1000, share: share)
        #expect(share.usedBytes <= (8 << 20) / 10)
        #expect(entries.find("next") != nil)
    }

    @Test("Concurrent stores stay within the share, and the sum is exact")
    func threads() async {
        let (entries, share) = (entries, share)
        await withTaskGroup { group in
            for thread in 0..<4 {
                group.addTask { @concurrent in
                    var dice = SplitMix64(seed: UInt64(thread))
                    for _ in 0..<500 {
                        let name = "\(Int.random(in: 0..<100, using: &dice))"
                        entries.put(name, bytes: 50_000, share: share)
                        #expect(share.usedBytes <= 2 << 20)
                        if let found = entries.find(name), Bool.random(using: &dice) {
                            entries.store.remove(found)
                        }
                    }
                }
            }
        }
        #expect(share.usedBytes == entries.store.account.indexedBytes)
    }
}
