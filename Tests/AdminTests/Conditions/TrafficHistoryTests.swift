import Admin
import Ground
import Telemetry
import Testing

@Suite("The history of a node's traffic")
struct TrafficHistoryTests {
    private let loop = EventLoopCounters()
    private let outcomes = OutcomeHistograms()

    private func sample(_ milliseconds: Int64) -> TrafficSample {
        TrafficSample(
            MetricsSnapshot(loops: [loop], node: NodeCounters(), outcomes: [outcomes]), sites: [],
            at: .milliseconds(milliseconds))
    }

    private func document(_ history: TrafficHistory) -> HistoryDocument { HistoryDocument(history) }

    @Test("Each interval has its own amounts, the oldest first")
    func intervals() {
        var history = TrafficHistory()
        #expect(!history.isDue(at: .milliseconds(9_999)) && history.isDue(at: .seconds(10)))
        loop.add(.requestsHit, 3)
        loop.add(.responsesSuccess, 3)
        loop.add(.sentBytes, 100)
        history.record(sample(10_010))
        loop.add(.requestsMissed, 2)
        loop.add(.responsesClientError)
        loop.add(.responsesServerError)
        loop.add(.originFetchesFailed)
        outcomes.add(.miss, nanoseconds: 1_500_000, bodyBytes: 5)
        // Not due yet: nothing is recorded twice.
        history.record(sample(19_900))
        history.record(sample(20_120))
        let shown = document(history)
        #expect(shown.intervalMilliseconds == 10_000 && shown.newestMilliseconds == 20_000)
        #expect(shown.requests == [3, 2] && shown.hits == [3, 0] && shown.misses == [0, 2])
        #expect(shown.clientErrors == [0, 1] && shown.serverErrors == [0, 1])
        #expect(shown.sentBytes == [100, 0] && shown.originFailed == [0, 1])
        #expect(shown.medianMicroseconds.first == 0)
        #expect((1_000...2_000).contains(shown.medianMicroseconds[1]))
        #expect(ShapeCheck.faults(shown.json, .getHistory) == [])
    }

    @Test("Intervals that were missed are filled, and no amount is lost")
    func gaps() {
        var history = TrafficHistory()
        history.record(sample(10_000))
        loop.add(.requestsHit, 100)
        loop.add(.responsesSuccess, 100)
        history.record(sample(81_000))
        let shown = document(history)
        #expect(shown.newestMilliseconds == 80_000 && shown.requests.count == 8)
        #expect(shown.requests.reduce(0, +) == 100 && shown.requests[1] == 14)
        // A machine that slept for a day.
        loop.add(.responsesSuccess, 1)
        history.record(sample(86_400_000))
        #expect(document(history).requests.count == TrafficHistory.intervalsMax)
        #expect(document(history).newestMilliseconds == 86_400_000)
    }

    @Test("The memory is bounded, whatever the uptime")
    func bounded() {
        var history = TrafficHistory()
        for interval in 1...Int64(2_000) {
            loop.add(.responsesSuccess)
            history.record(sample(interval * 10_000))
        }
        let shown = document(history)
        #expect(shown.requests == Array(repeating: 1, count: TrafficHistory.intervalsMax))
        #expect(history.bytes <= 100_000)
        #expect(ShapeCheck.faults(shown.json, .getHistory) == [])
    }

    @Test("A window reaches back as far as asked, and at most one interval further")
    func windows() {
        var history = TrafficHistory()
        for interval in 1...Int64(60) {
            loop.add(.responsesSuccess, 10)
            history.record(sample(interval * 10_000))
        }
        let now = sample(604_000)
        for (length, duration) in [(10, 14), (60, 64), (300, 304)] as [(Int64, Int64)] {
            let window = history.window(.seconds(length), until: now)
            #expect(window.duration == .seconds(duration))
            #expect(window[.responsesSuccess] == UInt64(duration - 4))
        }
        // A young node has only its uptime.
        let young = TrafficHistory().window(.seconds(60), until: sample(5_000))
        #expect(young.duration == .seconds(5) && young[.responsesSuccess] == 600)
    }
}
