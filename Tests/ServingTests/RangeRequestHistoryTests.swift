import Ground
import Serving
import Testing

@Suite("Range requests for responses that are not stored")
struct RangeRequestHistoryTests {
    private let start = Instant(nanoseconds: 1_000_000_000_000)

    @Test("The first request fetches the range, another within a minute the whole")
    func again() {
        var table = RangeRequestHistory()
        #expect(table.recordPartRequest(1, now: start) == .part)
        #expect(table.recordPartRequest(2, now: start) == .part)
        #expect(table.recordPartRequest(1, now: start + .seconds(59)) == .whole)
        // Each request restarts the minute.
        #expect(table.recordPartRequest(1, now: start + .seconds(118)) == .whole)
        #expect(table.recordPartRequest(1, now: start + .seconds(178)) == .part)
    }

    @Test("A response known as unstorable is not fetched whole until it is storable")
    func unfit() {
        var table = RangeRequestHistory()
        #expect(table.recordPartRequest(1, now: start) == .part)
        table.recordStorability(.unstorable, of: 1)
        for _ in 1...3 { #expect(table.recordPartRequest(1, now: start) == .part) }
        table.recordStorability(.storable(bytes: 5 << 20), of: 1)
        #expect(table.recordPartRequest(1, now: start) == .whole)
    }

    @Test("A recorded storability does not count as a request")
    func known() {
        var table = RangeRequestHistory()
        table.recordStorability(.storable(bytes: 10), of: 1)
        #expect(table.recordPartRequest(1, now: start) == .part)
        #expect(table.recordPartRequest(1, now: start) == .whole)
    }

    @Test("Storable responses of up to 4 MiB are small")
    func small() {
        #expect(RangeRequestHistory.Storability.storable(bytes: 4 << 20).isSmall)
        #expect(!RangeRequestHistory.Storability.storable(bytes: 4 << 20 + 1).isSmall)
        #expect(!RangeRequestHistory.Storability.unknown.isSmall)
        #expect(!RangeRequestHistory.Storability.unstorable.isSmall)
    }

    @Test("The history is bounded and keeps the most recent requests")
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
