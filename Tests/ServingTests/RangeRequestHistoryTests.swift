import Ground
import Serving
import Testing

@Suite("Parts of what is not stored")
struct RangeRequestHistoryTests {
    private let start = Instant(nanoseconds: 1_000_000_000_000)

    @Test("the first part is asked for as a part, another within a minute has the whole fetched")
    func again() {
        var table = RangeRequestHistory()
        #expect(table.recordPartRequest(1, now: start) == .part)
        #expect(table.recordPartRequest(2, now: start) == .part)
        #expect(table.recordPartRequest(1, now: start + .seconds(59)) == .whole)
        // Each time counts anew.
        #expect(table.recordPartRequest(1, now: start + .seconds(118)) == .whole)
        #expect(table.recordPartRequest(1, now: start + .seconds(178)) == .part)
    }

    @Test("what is not fit to be stored is not tried again, until it is")
    func unfit() {
        var table = RangeRequestHistory()
        #expect(table.recordPartRequest(1, now: start) == .part)
        table.recordStorability(.unstorable, of: 1)
        for _ in 1...3 { #expect(table.recordPartRequest(1, now: start) == .part) }
        table.recordStorability(.storable(bytes: 5 << 20), of: 1)
        #expect(table.recordPartRequest(1, now: start) == .whole)
    }

    @Test("what is only known of is wanted for the first time all the same")
    func known() {
        var table = RangeRequestHistory()
        table.recordStorability(.storable(bytes: 10), of: 1)
        #expect(table.recordPartRequest(1, now: start) == .part)
        #expect(table.recordPartRequest(1, now: start) == .whole)
    }

    @Test("4 MiB are small, if they may be stored")
    func small() {
        #expect(RangeRequestHistory.Storability.storable(bytes: 4 << 20).isSmall)
        #expect(!RangeRequestHistory.Storability.storable(bytes: 4 << 20 + 1).isSmall)
        #expect(!RangeRequestHistory.Storability.unknown.isSmall)
        #expect(!RangeRequestHistory.Storability.unstorable.isSmall)
    }

    @Test("it remembers those that came last, of any number")
    func bounded() {
        var table = RangeRequestHistory(notesMax: 10)
        for hash in 0..<1_000 {
            #expect(table.recordPartRequest(UInt64(hash), now: start) == .part)
            #expect(table.count <= 20)
        }
        for hash in 990..<1_000 {
            #expect(table.recordPartRequest(UInt64(hash), now: start) == .whole)
        }
        #expect(table.recordPartRequest(0, now: start) == .part)
    }
}
