import Cluster
import Ground
import Testing

@Suite("A node that hands over everything knows when to go")
struct DrainWatchTests {
    private static let done = DrainWatch.Rest(isNone: true, isOnRing: false, hasMissed: false)
    private static let busy = DrainWatch.Rest(isNone: false, isOnRing: false, hasMissed: false)

    private func second(_ count: Int64) -> Instant { .zero + .seconds(count) }

    @Test("it goes when nothing is left, and not before it has left the ring")
    func over() {
        let watch = DrainWatch(now: second(0))
        #expect(watch.outcome(Self.busy, now: second(1)) == nil)
        var onRing = Self.done
        onRing.isOnRing = true
        #expect(watch.outcome(onRing, now: second(1)) == nil)
        #expect(watch.outcome(Self.done, now: second(1)) == .over(isComplete: true))
    }

    @Test("what was refused, dropped, or could not be offered is said")
    func incomplete() {
        var refused = DrainWatch(now: second(0))
        refused.answered(3, kept: 2, now: second(1))
        #expect(refused.outcome(Self.done, now: second(2)) == .over(isComplete: false))
        var dropped = DrainWatch(now: second(0))
        dropped.dropped()
        #expect(dropped.outcome(Self.done, now: second(2)) == .over(isComplete: false))
        var missed = Self.done
        missed.hasMissed = true
        let watch = DrainWatch(now: second(0))
        #expect(watch.outcome(missed, now: second(2)) == .over(isComplete: false))
        var taken = DrainWatch(now: second(0))
        taken.answered(3, kept: 3, now: second(1))
        #expect(taken.outcome(Self.done, now: second(2)) == .over(isComplete: true))
    }

    @Test("it waits for as long as somebody answers something, and half a minute more")
    func standstill() {
        var watch = DrainWatch(now: second(0))
        #expect(watch.outcome(Self.busy, now: second(29)) == nil)
        watch.answered(1, kept: 1, now: second(29))
        watch.answered(0, kept: 0, now: second(50))
        #expect(watch.outcome(Self.busy, now: second(58)) == nil)
        #expect(watch.outcome(Self.busy, now: second(59)) == .standsStill)
        #expect(watch.outcome(Self.done, now: second(90)) == .over(isComplete: true))
    }
}
