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
                let verdict = pace.take(host, now: at(second * 1_000 + number / 2))
                #expect(verdict == .alone)
            }
        }
        let due = pace.due(now: at(9_000))
        #expect(due.isEmpty && !pace.hasMerged)
    }

    @Test("what is more goes together, and the purge of the host comes after all of it")
    func together() {
        var pace = InvalidationPace()
        for _ in 0..<1_000 { _ = pace.take(host, now: at(0)) }
        for number in 0..<500 {
            let verdict = pace.take(host, now: at(Int64(number)))
            #expect(verdict == .together)
        }
        let other = pace.take(Array("b.test".utf8), now: at(500))
        #expect(other == .alone, "a host pays for itself")
        let early = pace.due(now: at(999))
        #expect(early.isEmpty && pace.hasMerged)
        // Until it is named, everything goes with it.
        let late = pace.take(host, now: at(1_400))
        #expect(late == .together)
        let due = pace.due(now: at(1_400))
        #expect(due == [host] && !pace.hasMerged)
        let next = pace.take(host, now: at(1_400))
        #expect(next == .alone)
    }

    @Test("what the log did not take goes with the host as soon as it takes something")
    func owed() {
        var pace = InvalidationPace()
        let verdict = pace.take(host, now: at(0))
        #expect(verdict == .alone && !pace.isOwed(host))
        pace.owes(host)
        #expect(pace.isOwed(host) && pace.hasMerged)
        let early = pace.due(now: at(999))
        #expect(early.isEmpty)
        let due = pace.due(now: at(1_000))
        #expect(due == [host] && !pace.isOwed(host))
        // It was not taken again.
        pace.owes(host)
        let again = pace.due(now: at(1_000))
        #expect(again == [host])
    }

    @Test("more hosts than are kept account of let more pass, and lose nothing")
    func hosts() {
        var pace = InvalidationPace()
        for _ in 0...1_000 { _ = pace.take(host, now: at(0)) }
        for number in 0..<5_000 {
            let verdict = pace.take(Array("\(number).test".utf8), now: at(1))
            #expect(verdict == .alone)
        }
        let due = pace.due(now: at(2))
        #expect(due == [host])
    }
}
