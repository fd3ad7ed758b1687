import Cluster
import Ground
import Testing

@Suite("When a draining node may stop")
struct DrainMonitorTests {
    private static let done = DrainMonitor.Remainder(
        isEmpty: true, isInRing: false, hasMissedReceivers: false)
    private static let busy = DrainMonitor.Remainder(
        isEmpty: false, isInRing: false, hasMissedReceivers: false)

    private func second(_ count: Int64) -> Instant { .zero + .seconds(count) }

    @Test("The drain ends when nothing is left and the node has left the ring")
    func over() {
        let watch = DrainMonitor(now: second(0))
        #expect(watch.outcome(Self.busy, now: second(1)) == nil)
        var onRing = Self.done
        onRing.isInRing = true
        #expect(watch.outcome(onRing, now: second(1)) == nil)
        #expect(watch.outcome(Self.done, now: second(1)) == .finished(isComplete: true))
    }

    @Test("Refused, dropped and missed offers make the drain incomplete")
    func incomplete() {
        var refused = DrainMonitor(now: second(0))
        refused.outcomesReceived(3, kept: 2, now: second(1))
        #expect(refused.outcome(Self.done, now: second(2)) == .finished(isComplete: false))
        var dropped = DrainMonitor(now: second(0))
        dropped.offerDropped()
        #expect(dropped.outcome(Self.done, now: second(2)) == .finished(isComplete: false))
        var missed = Self.done
        missed.hasMissedReceivers = true
        let watch = DrainMonitor(now: second(0))
        #expect(watch.outcome(missed, now: second(2)) == .finished(isComplete: false))
        var taken = DrainMonitor(now: second(0))
        taken.outcomesReceived(3, kept: 3, now: second(1))
        #expect(taken.outcome(Self.done, now: second(2)) == .finished(isComplete: true))
    }

    @Test("The drain waits while replies come, and half a minute longer")
    func standstill() {
        var watch = DrainMonitor(now: second(0))
        #expect(watch.outcome(Self.busy, now: second(29)) == nil)
        watch.outcomesReceived(1, kept: 1, now: second(29))
        watch.outcomesReceived(0, kept: 0, now: second(50))
        #expect(watch.outcome(Self.busy, now: second(58)) == nil)
        #expect(watch.outcome(Self.busy, now: second(59)) == .stalled)
        #expect(watch.outcome(Self.done, now: second(90)) == .finished(isComplete: true))
    }
}
