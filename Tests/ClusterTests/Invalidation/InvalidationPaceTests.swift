import Cluster
import Ground
import Testing

@Suite("Invalidations that requests cause")
struct InvalidationPaceTests {
    private let host = Array("a.test".utf8)

    private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

    @Test("up to a thousand of a host in a second go into the log one by one")
    func alone() {
        var pace = InvalidationPace()
        for second in 0..<3 as Range<Int64> {
            for number in 0..<1_000 as Range<Int64> {
                #expect(pace.take(host, now: at(second * 1_000 + number / 2)) == .alone)
            }
        }
        #expect(pace.due(now: at(9_000)).isEmpty && !pace.hasMerged)
    }

    @Test("what is more goes together, and the purge of the host comes after all of it")
    func together() {
        var pace = InvalidationPace()
        for _ in 0..<1_000 { _ = pace.take(host, now: at(0)) }
        for number in 0..<500 {
            #expect(pace.take(host, now: at(Int64(number))) == .together)
        }
        #expect(pace.take(Array("b.test".utf8), now: at(500)) == .alone, "a host pays for itself")
        #expect(pace.due(now: at(999)).isEmpty && pace.hasMerged)
        // Until it is named, everything goes with it.
        #expect(pace.take(host, now: at(1_400)) == .together)
        #expect(pace.due(now: at(1_400)) == [host] && !pace.hasMerged)
        #expect(pace.take(host, now: at(1_400)) == .alone)
    }

    @Test("what the log did not take goes with the host as soon as it takes something")
    func owed() {
        var pace = InvalidationPace()
        #expect(pace.take(host, now: at(0)) == .alone && !pace.isOwed(host))
        pace.owes(host)
        #expect(pace.isOwed(host) && pace.hasMerged)
        #expect(pace.due(now: at(999)).isEmpty)
        #expect(pace.due(now: at(1_000)) == [host] && !pace.isOwed(host))
        // It was not taken again.
        pace.owes(host)
        #expect(pace.due(now: at(1_000)) == [host])
    }

    @Test("more hosts than are kept account of let more pass, and lose nothing")
    func hosts() {
        var pace = InvalidationPace()
        for _ in 0...1_000 { _ = pace.take(host, now: at(0)) }
        for number in 0..<5_000 {
            #expect(pace.take(Array("\(number).test".utf8), now: at(1)) == .alone)
        }
        #expect(pace.due(now: at(2)) == [host])
    }
}
