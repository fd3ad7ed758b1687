import Cluster
import Ground
import Testing

@Suite("Rate limit for invalidations by unsafe requests")
struct InvalidationThrottleTests {
    private let host = Array("a.test".utf8)

    private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

    @Test("Up to a thousand of a host in a second are logged one by one")
    func alone() {
        var pace = InvalidationThrottle()
        for second in 0..<3 as Range<Int64> {
            for number in 0..<1_000 as Range<Int64> {
                #expect(pace.admit(host, now: at(second * 1_000 + number / 2)) == .individual)
            }
        }
        #expect(pace.takeDueHosts(now: at(9_000)).isEmpty && !pace.hasCoalescedHosts)
    }

    @Test("More than that are coalesced, and the host's purge follows all of them")
    func together() {
        var pace = InvalidationThrottle()
        for _ in 0..<1_000 { _ = pace.admit(host, now: at(0)) }
        for number in 0..<500 {
            #expect(pace.admit(host, now: at(Int64(number))) == .coalesced)
        }
        #expect(
            pace.admit(Array("b.test".utf8), now: at(500)) == .individual, "hosts are independent")
        #expect(pace.takeDueHosts(now: at(999)).isEmpty && pace.hasCoalescedHosts)
        // Until the host's purge is taken, all are coalesced with it.
        #expect(pace.admit(host, now: at(1_400)) == .coalesced)
        #expect(pace.takeDueHosts(now: at(1_400)) == [host] && !pace.hasCoalescedHosts)
        #expect(pace.admit(host, now: at(2_400)) == .individual, "it was quiet for a second")
    }

    @Test("a host with constant writes costs one purge a second, until it has fewer")
    func constant() {
        var pace = InvalidationThrottle()
        var individual = 0
        var purges = 0
        func write(_ milliseconds: Range<Int64>, perMillisecond count: Int) {
            for time in milliseconds {
                for _ in 0..<count where pace.admit(host, now: at(time)) == .individual {
                    individual += 1
                }
                purges += pace.takeDueHosts(now: at(time)).count
            }
        }
        write(0..<10_500, perMillisecond: 2)
        #expect(individual == 1_000 && purges == 10)
        write(10_500..<14_000, perMillisecond: 1)
        #expect(individual == 1_000, "a thousand and one in a second are too many still")
        for time in stride(from: 14_000 as Int64, to: 20_000, by: 2) {
            write(time..<time + 1, perMillisecond: 1)
        }
        #expect(individual > 3_000 && purges <= 16)
    }

    @Test("Invalidations that the log refused are covered by a purge of the host")
    func owed() {
        var pace = InvalidationThrottle()
        #expect(pace.admit(host, now: at(0)) == .individual && !pace.isHostPurgePending(host))
        pace.requireHostPurge(host)
        #expect(pace.isHostPurgePending(host) && pace.hasCoalescedHosts)
        #expect(pace.takeDueHosts(now: at(999)).isEmpty)
        #expect(pace.takeDueHosts(now: at(1_000)) == [host] && !pace.isHostPurgePending(host))
        // It was refused again.
        pace.requireHostPurge(host)
        #expect(pace.takeDueHosts(now: at(1_000)) == [host])
    }

    @Test("With too many hosts for the table limits are looser, and nothing is lost")
    func hosts() {
        var pace = InvalidationThrottle()
        for _ in 0...1_000 { _ = pace.admit(host, now: at(0)) }
        for number in 0..<5_000 {
            #expect(pace.admit(Array("\(number).test".utf8), now: at(1)) == .individual)
        }
        #expect(pace.takeDueHosts(now: at(2)) == [host])
    }
}
