import Ground
import NIOCore
import Store
import Testing
import Tiers

@Suite("Admission to a full memory tier")
struct MemoryAdmissionTests {
    private let entries = Entries(limitBytes: 16 << 20)

    /// Fills the memory with entries of 60 KB, each requested `uses` times.
    private func fill(uses: Int) {
        for number in 0..<400 {
            entries.put("\(number)", bytes: 60_000)
            for _ in 0..<uses { _ = entries.find("\(number)") }
        }
    }

    private var found: Int { (0..<400).count { entries.find("\($0)") != nil } }

    @Test("A large new entry does not evict requested ones unless it must be stored")
    func largeNewcomer() {
        fill(uses: 2)
        let count = found
        for number in 0..<4 {
            #expect(entries.put("large\(number)", bytes: 8 << 20, isJudged: true) == nil)
        }
        #expect(found > count * 9 / 10)
        #expect(entries.put("needed", bytes: 8 << 20) != nil)
        #expect(entries.find("needed") != nil && entries.store.count < count * 2 / 3)
    }

    @Test("Entries without a hit yield to a new entry of their size")
    func equals() {
        fill(uses: 0)
        #expect(entries.put("large", bytes: 60_000, isJudged: true) != nil)
        #expect(entries.put("small", bytes: 1_000, isJudged: true) != nil)
    }

    @Test("An entry of up to a 16th of the memory is never refused")
    func smallOnes() {
        fill(uses: 9)
        for number in 0..<40 {
            #expect(entries.put("new\(number)", bytes: 900_000, isJudged: true) != nil)
        }
    }

    @Test("With enough free space a large entry is stored without admission")
    func room() {
        entries.put("small", bytes: 60_000)
        for _ in 0..<9 { _ = entries.find("small") }
        #expect(entries.put("large", bytes: 12 << 20, isJudged: true) != nil)
        #expect(entries.find("small") != nil)
    }

    @Test("Repeated requests admit an entry when the others are no longer requested")
    func persistence() {
        fill(uses: 2)
        var refusals = 0
        while entries.put("large", bytes: 4 << 20, isJudged: true) == nil, refusals < 100_000 {
            refusals += 1
        }
        #expect(refusals > 0 && entries.find("large") != nil)
    }

    @Test("A body of unknown length is judged by its size so far, and evicts nothing")
    func growing() {
        fill(uses: 2)
        let store = entries.store
        let before = store.account.usedBytes
        let key = Entries.key("growing")
        let reservation = FetchReservation(store)
        reservation.admissionHash = store.hash(key.span, 0..<key.count)
        var steps = 0
        while reservation.grow(by: 64 << 10), steps < 1_000 { steps += 1 }
        // Up to a 16th of the memory it is not judged; soon afterwards it is worth less.
        #expect(16...64 ~= steps)
        #expect(reservation.reservedBytes == steps * 64 << 10)
        #expect(store.account.usedBytes <= 16 << 20)
        // A body that is not stored has a window all the same.
        #expect(reservation.openWindow(large: 256 << 10, small: 32 << 10) == 256 << 10)
        reservation.release(reservation.reservedBytes)
        #expect(store.account.usedBytes <= before)
    }

    @Test("Whatever is refused, the limit holds and the sums are exact")
    func limitHolds() async {
        let entries = entries
        await withTaskGroup { group in
            for thread in UInt64(0)..<3 {
                group.addTask { @concurrent in
                    var dice = SplitMix64(seed: thread)
                    for _ in 0..<3_000 {
                        let name = "\(Int.random(in: 0..<500, using: &dice))"
                        guard entries.find(name) == nil else { continue }
                        let isLarge = Int.random(in: 0..<50, using: &dice) == 0
                        entries.put(
                            name, bytes: isLarge ? 3 << 20 : 60_000,
                            isJudged: Bool.random(using: &dice))
                        #expect(entries.store.account.usedBytes <= 16 << 20)
                    }
                }
            }
        }
        #expect(entries.store.account.usedBytes == entries.store.account.indexedBytes)
        #expect(entries.store.account.fetchBytes == 0)
    }
}
