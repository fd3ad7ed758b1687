import Ground
import Peering
import Testing

@Suite("Log lines about the fence")
struct FenceLogLimiterTests {
    private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    @Test(
        "A fence that stays closed is logged after a while and every minute, and its opening once")
    func closed() {
        var report = FenceLogLimiter()
        var lines: [Int64: FenceLogLimiter.Event] = [:]
        for second in 0...130 as ClosedRange<Int64> {
            lines[second] = report.nextEvent(closedFor: .seconds(second), now: at(second))
        }
        lines[131] = report.nextEvent(closedFor: nil, now: at(131))
        lines[132] = report.nextEvent(closedFor: nil, now: at(132))
        #expect(
            lines == [
                5: .closed(for: .seconds(5)), 65: .closed(for: .seconds(65)),
                125: .closed(for: .seconds(125)), 131: .opened(after: .seconds(130)),
            ])
    }

    @Test("A fence that was closed for a moment is not logged")
    func moment() {
        var report = FenceLogLimiter()
        for second in 0..<100 as Range<Int64> {
            let closedFor: Interval? = second % 5 == 0 ? nil : .seconds(second % 5)
            #expect(report.nextEvent(closedFor: closedFor, now: at(second)) == nil)
        }
    }
}
