import Ground
import NIOCore
import Store
import Testing
import Tiers

@Suite("The memory tier of a node")
struct MemoryStoreTests {
    @Test("The limit holds at all times, whatever is stored, read, replaced and held")
    func limitHolds() {
        let limit = 2 << 20
        let entries = Entries(limitBytes: limit)
        var dice = SplitMix64(seed: 7)
        var held: [MemoryEntry] = []
        for step in 0..<4_000 {
            let bytes = Int.random(in: 0...(step % 50 == 0 ? 400_000 : 20_000), using: &dice)
            let name = "\(Int.random(in: 0..<300, using: &dice))"
            if let entry = entries.put(name, bytes: bytes), step % 17 == 0 {
                held.append(entry)
            }
            if held.count > 8 { held.removeFirst() }
            #expect(entries.store.account.usedBytes <= limit)
            #expect(entries.store.account.pinnedBytes <= limit / 4 + 500_000)
        }
        #expect(entries.store.evictions[.byteLimit] > 0)
        held = []
        #expect(entries.store.account.usedBytes == entries.store.account.indexedBytes)
    }

    @Test("A look-up finds the response stored last under its key", arguments: UInt64(1)...4)
    func agreesWithADictionary(seed: UInt64) {
        let entries = Entries(limitBytes: 64 << 20)
        var model: [String: UInt8] = [:]
        var dice = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            let name = "\(Int.random(in: 0..<200, using: &dice))"
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                let marker = UInt8.random(in: 0...255, using: &dice)
                entries.put(name, bytes: Int.random(in: 1...100, using: &dice), marker: marker)
                model[name] = marker
            case 1:
                if let entry = entries.find(name) { entries.store.remove(entry) }
                model[name] = nil
            default:
                let found = entries.find(name)?.body.chunks[0].getInteger(at: 0, as: UInt8.self)
                #expect(found == model[name])
            }
            #expect(entries.store.count == model.count)
        }
        #expect(entries.evictions == [:])
    }

    @Test("An evicted body counts until its last reader finishes")
    func pinned() {
        let entries = Entries(limitBytes: 1 << 20)
        var reader = entries.put("held", bytes: 200_000)
        for number in 0..<20 { entries.put("other\(number)", bytes: 200_000) }
        #expect(entries.find("held") == nil)
        #expect(entries.store.account.pinnedBytes >= 200_000)
        #expect(reader?.body.size == 200_000)
        reader = nil
        #expect(entries.store.account.pinnedBytes == 0)
    }

    @Test("While readers hold everything nothing is stored, and the limit holds")
    func everythingIsHeld() {
        let limit = 1 << 20
        let entries = Entries(limitBytes: limit)
        var held: [MemoryEntry] = []
        for number in 0..<40 {
            guard let entry = entries.put("\(number)", bytes: 100_000) else { break }
            held.append(entry)
        }
        #expect(held.count < 40)
        #expect(entries.put("more", bytes: 100_000) == nil)
        #expect(entries.store.account.usedBytes <= limit)
        #expect(entries.find("\(held.count - 1)") != nil)
        held = []
        #expect(entries.put("more", bytes: 100_000) != nil)
    }

    @Test("A body larger than the limit is refused without evicting anything")
    func tooLarge() {
        let entries = Entries(limitBytes: 1 << 20)
        entries.put("small", bytes: 1_000)
        #expect(entries.put("huge", bytes: 2 << 20) == nil)
        #expect(entries.find("small") != nil)
    }

    @Test("At the limit on entries, a replacement evicts no third entry")
    func replacingAtEntriesMax() {
        let entries = Entries(limitBytes: 64 << 20, entriesMax: 10)
        for number in 0..<10 { entries.put("\(number)", bytes: 10) }
        for number in 0..<10 { entries.put("\(number)", bytes: 10, marker: 7) }
        #expect((0..<10).allSatisfy { entries.find("\($0)") != nil })
        #expect(entries.evictions == [:])
        #expect(entries.store.count == 10)
    }

    @Test("The limit on entries holds at all times, however many threads store")
    func entriesMaxIsStrict() async {
        let entries = Entries(limitBytes: 64 << 20, entriesMax: 10)
        let most = await withTaskGroup(of: Int.self) { group in
            for writer in UInt64(0)..<4 {
                group.addTask {
                    var dice = SplitMix64(seed: writer)
                    var most = 0
                    for _ in 0..<20_000 {
                        entries.put("\(Int.random(in: 0..<40, using: &dice))", bytes: 10)
                        most = max(most, entries.store.count)
                    }
                    return most
                }
            }
            return await group.reduce(0, max)
        }
        #expect(most == 10)
        let found = (0..<40).count { entries.find("\($0)") != nil }
        #expect(found == entries.store.count)
    }

    @Test("An entry of impossible size has an overhead and is refused")
    func overheadOfAnyLength() {
        let entries = Entries(limitBytes: 1 << 20)
        for bodyBytes: UInt64 in [.max, 1 << 63, (1 << 63) - 1] {
            let overhead = MemoryEntry.overhead(
                keyBytes: 2_000, headBytes: 20_000, bodyBytes: bodyBytes)
            #expect(overhead > 1 << 20)
            #expect(!entries.store.reserve(overhead + BodyLayout.capacity(bodyBytes)))
        }
        #expect(entries.store.account.usedBytes == 0)
    }
}
