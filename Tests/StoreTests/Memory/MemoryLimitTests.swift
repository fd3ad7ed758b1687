import Foundation
import Ground
import NIOCore
import Store
import Testing

@Suite("Changing the limits of the memory tier in use")
struct MemoryLimitTests {
    private let entries = Entries(limitBytes: 16 << 20)

    private func fill(_ count: Int = 400, bytes: Int = 60_000) {
        for number in 0..<count { entries.put("\(number)", bytes: bytes) }
    }

    @Test("A lower limit on bytes applies at once, a higher one can be filled")
    func bytes() {
        fill()
        entries.store.applyLimits(limitBytes: 1 << 20, entriesMax: 0)
        #expect(entries.store.account.usedBytes <= 1 << 20)
        #expect(entries.store.account.usedBytes > (1 << 20) - 200_000)
        #expect(entries.store.configuredBytes == 1 << 20)
        entries.store.applyLimits(limitBytes: 8 << 20, entriesMax: 0)
        fill()
        #expect(entries.store.account.usedBytes > 7 << 20)
        #expect(entries.store.account.usedBytes <= 8 << 20)
    }

    @Test("A limit on entries applies at once, and 0 removes it")
    func entryCount() {
        fill(2_000, bytes: 100)
        #expect(entries.store.count == 2_000)
        entries.store.applyLimits(limitBytes: 16 << 20, entriesMax: 700)
        #expect(entries.store.count == 700)
        entries.put("one more", bytes: 100)
        #expect(entries.store.count == 700)
        #expect(entries.find("one more") != nil)
        entries.store.applyLimits(limitBytes: 16 << 20, entriesMax: 0)
        entries.put("and another", bytes: 100)
        #expect(entries.store.count == 701)
    }

    @Test("The lower of the configured and the pressure limit applies, in either order")
    func lowerOfTwo() {
        let store = entries.store
        fill()
        store.setPressureLimit(bytes: 2 << 20)
        #expect(store.account.limitBytes == 2 << 20 && store.account.usedBytes <= 2 << 20)
        #expect(store.configuredBytes == 16 << 20)
        store.applyLimits(limitBytes: 4 << 20, entriesMax: 0)
        #expect(store.account.limitBytes == 2 << 20)
        store.applyLimits(limitBytes: 1 << 20, entriesMax: 0)
        #expect(store.account.limitBytes == 1 << 20 && store.account.usedBytes <= 1 << 20)
        store.setPressureLimit(bytes: nil)
        #expect(store.account.limitBytes == 1 << 20)
        store.applyLimits(limitBytes: 4 << 20, entriesMax: 0)
        #expect(store.account.limitBytes == 4 << 20)
    }

    @Test("Entries without readers are evicted before those being read")
    func readersAreSpared() {
        var held: [MemoryEntry] = []
        for number in 0..<100 {
            guard let entry = entries.put("\(number)", bytes: 60_000) else { continue }
            if number % 4 == 0 { held.append(entry) }
        }
        entries.store.setPressureLimit(bytes: 2 << 20)
        #expect(entries.store.account.usedBytes <= 2 << 20)
        #expect(held.allSatisfy { entries.find(name(of: $0)) != nil })
    }

    @Test("A limit below what is being read empties the tier and holds when the readers finish")
    func readersHold() {
        var held = (0..<100).compactMap { entries.put("\($0)", bytes: 60_000) }
        entries.store.setPressureLimit(bytes: 1 << 20)
        #expect(entries.store.account.usedBytes > 5 << 20)
        #expect(entries.store.account.limitBytes == 1 << 20)
        #expect(entries.store.count == 0 && held.count == 100)
        #expect(!entries.store.reserve(1))
        held = []
        #expect(entries.store.account.usedBytes == 0)
        #expect(entries.put("again", bytes: 60_000) != nil)
    }

    @Test("Limits that change during stores hold, and the sums are exact")
    func whileOthersStore() async {
        let store = entries.store
        await withTaskGroup(of: Void.self) { group in
            for writer in UInt64(0)..<2 {
                group.addTask {
                    var dice = SplitMix64(seed: writer)
                    for _ in 0..<20_000 {
                        let name = "\(Int.random(in: 0..<3_000, using: &dice))"
                        if entries.find(name) == nil { entries.put(name, bytes: 6_000) }
                    }
                }
            }
            group.addTask {
                var dice = SplitMix64(seed: 9)
                for _ in 0..<200 {
                    let bytes = Int.random(in: 1...16, using: &dice) << 20
                    if Bool.random(using: &dice) {
                        store.setPressureLimit(bytes: bytes)
                    } else {
                        let most = Int.random(in: 0...2, using: &dice) * 500
                        store.applyLimits(limitBytes: bytes, entriesMax: most)
                    }
                }
            }
        }
        store.setPressureLimit(bytes: nil)
        store.applyLimits(limitBytes: 3 << 20, entriesMax: 300)
        #expect(store.account.usedBytes <= 3 << 20)
        #expect(store.account.usedBytes == store.account.indexedBytes)
        #expect(store.count <= 300)
        let found = (0..<3_000).count { entries.find("\($0)") != nil }
        #expect(found == store.count)
    }

    @Test("Evicted memory returns to the kernel when free memory is released")
    func residentBytesFall() throws {
        let large = Entries(limitBytes: 512 << 20)
        for number in 0..<2_500 { large.put("\(number)", bytes: 100_000) }
        let before = try residentBytes()
        large.store.setPressureLimit(bytes: 16 << 20)
        Allocator.releaseFreeMemory()
        let freed = try before - residentBytes()
        // Other tests allocate meanwhile: this much of 230 MiB has to be freed.
        #expect(freed > 128 << 20, "\(freed >> 20) MiB")
        #expect(large.store.count > 0)
    }

    private func name(of entry: MemoryEntry) -> String {
        String(decoding: entry.key, as: UTF8.self).split(separator: "/").last.map(String.init)
            ?? ""
    }

    private func residentBytes() throws -> Int {
        let statm = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}
