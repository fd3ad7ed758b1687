import Ground
import NIOCore
import Store
import Testing
import Tiers

@Suite("Who gets into a full memory")
struct MemoryAdmissionTests {
    private let entries = Entries(limitBytes: 16 << 20)

    /// Fills the memory with entries of 60 KB that are asked for `uses` times each.
    private func fill(uses: Int) {
        for number in 0..<400 {
            entries.put("\(number)", bytes: 60_000)
            for _ in 0..<uses { _ = entries.find("\(number)") }
        }
    }

    private var found: Int { (0..<400).count { entries.find("\($0)") != nil } }

    @Test("a large newcomer does not flush what was asked for, a needed one does")
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

    @Test("what nobody asked for gives way to a newcomer of its size, whoever judges")
    func equals() {
        fill(uses: 0)
        #expect(entries.put("large", bytes: 60_000, isJudged: true) != nil)
        #expect(entries.put("small", bytes: 1_000, isJudged: true) != nil)
    }

    @Test("one that takes no more than a 16th of the memory is never refused")
    func smallOnes() {
        fill(uses: 9)
        for number in 0..<40 {
            #expect(entries.put("new\(number)", bytes: 900_000, isJudged: true) != nil)
        }
    }

    @Test("where there is room for it, a large one gets in unasked")
    func room() {
        entries.put("small", bytes: 60_000)
        for _ in 0..<9 { _ = entries.find("small") }
        #expect(entries.put("large", bytes: 12 << 20, isJudged: true) != nil)
        #expect(entries.find("small") != nil)
    }

    @Test("one that is asked for again and again gets in when the others are asked for no more")
    func persistence() {
        fill(uses: 2)
        var refusals = 0
        while entries.put("large", bytes: 4 << 20, isJudged: true) == nil, refusals < 100_000 {
            refusals += 1
        }
        #expect(refusals > 0 && entries.find("large") != nil)
    }

    @Test("a body of unknown length is judged by what has come so far, and gives up nothing")
    func growing() {
        fill(uses: 2)
        let store = entries.store
        let before = store.account.usedBytes
        let key = Entries.key("growing")
        let reservation = FetchReservation(store)
        reservation.admissionHash = store.hash(key.span, 0..<key.count)
        var steps = 0
        while reservation.grow(by: 64 << 10), steps < 1_000 { steps += 1 }
        // Up to a 16th of the memory it is not judged; then it is soon worth less.
        #expect(16...64 ~= steps)
        #expect(reservation.reservedBytes == steps * 64 << 10)
        #expect(store.account.usedBytes <= 16 << 20)
        // What is not kept has its window all the same.
        #expect(reservation.openWindow(large: 256 << 10, small: 32 << 10) == 256 << 10)
        reservation.release(reservation.reservedBytes)
        #expect(store.account.usedBytes <= before)
    }

    @Test("whoever is refused, the limit holds, and what is counted is what is there")
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
