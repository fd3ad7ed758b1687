import Ground
import Store
import Testing
import Tiers

@Suite("Counters of evictions by reason")
struct EvictionCountersTests {
    @Test("The limits on bytes and on entries")
    func limits() {
        let small = Entries(limitBytes: 1 << 20)
        for number in 0..<40 { small.put("\(number)", bytes: 60_000) }
        let gone = UInt64(40 - small.store.count)
        #expect(gone > 20 && small.evictions == [.byteLimit: gone])
        let few = Entries(limitBytes: 16 << 20, entriesMax: 10)
        for number in 0..<25 { few.put("\(number)", bytes: 10) }
        #expect(few.evictions == [.entryLimit: 15])
    }

    @Test("The share of a site")
    func share() {
        let entries = Entries(limitBytes: 8 << 20)
        let share = MemoryShare(percent: 25)
        for number in 0..<60 { entries.put("\(number)", bytes: 60_000, share: share) }
        #expect(entries.evictions == [.share: UInt64(60 - entries.store.count)])
        #expect(entries.store.count < 40)
    }

    @Test("A lower limit, by the settings or under memory pressure")
    func lowered() {
        let entries = Entries(limitBytes: 16 << 20)
        for number in 0..<200 { entries.put("\(number)", bytes: 60_000) }
        entries.store.setPressureLimit(bytes: 8 << 20)
        let pressed = UInt64(200 - entries.store.count)
        #expect(pressed > 50 && entries.evictions == [.pressure: pressed])
        entries.store.applyLimits(limitBytes: 4 << 20, entriesMax: 0)
        let lowered = UInt64(200 - entries.store.count) - pressed
        #expect(lowered > 20 && entries.evictions == [.pressure: pressed, .limitLowered: lowered])
        let left = entries.store.count
        entries.store.applyLimits(limitBytes: 4 << 20, entriesMax: 5)
        let all = lowered + UInt64(left - 5)
        #expect(entries.evictions == [.pressure: pressed, .limitLowered: all])
    }

    @Test("Purges are counted; replaced and forgotten entries are not")
    func purged() throws {
        let entries = Entries(limitBytes: 8 << 20)
        for name in ["a/1", "a/2", "b/1"] { entries.put(name, bytes: 100) }
        entries.put("a/1", bytes: 200)
        entries.store.remove(try #require(entries.find("b/1")))
        #expect(entries.evictions == [:])
        entries.store.marks.apply(
            [.prefix(host: Array("origin".utf8), path: Array("/a".utf8))], isSoft: false,
            now: .zero + .seconds(1))
        #expect(entries.find("a/1") == nil && entries.find("a/2") == nil)
        #expect(entries.evictions == [.purged: 2])
    }

    @Test("Overhead is the memory of entries beside their bodies")
    func overhead() throws {
        let entries = Entries(limitBytes: 8 << 20)
        let one = try #require(entries.put("a", bytes: 60_000))
        let two = try #require(entries.put("b", bytes: 10, tags: [Array("shoes".utf8)]))
        let account = entries.store.account
        #expect(account.overheadBytes == one.overheadBytes + two.overheadBytes)
        let bodies = one.body.capacityBytes + two.body.capacityBytes
        #expect(account.indexedBytes - account.overheadBytes == bodies)
        entries.store.remove(one)
        #expect(account.overheadBytes == two.overheadBytes)
    }
}
