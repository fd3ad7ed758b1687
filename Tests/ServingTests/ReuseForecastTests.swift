import Cluster
import Ground
import HTTPRules
import Serving
import Testing

@Suite("What a stored answer would be good for")
struct ReuseForecastTests {
    private static func at(_ seconds: Int64) -> Instant {
        Instant(nanoseconds: seconds * 1_000_000_000)
    }

    private let open = FenceWindow(currentUntil: .distantFuture, closedAt: .distantFuture)
    private let closed = FenceWindow(currentUntil: Self.at(50), closedAt: Self.at(50))

    private func facts(flags: EntryFlags = [], freshUntil: Int64 = 200) -> EntryMetadata {
        EntryMetadata(
            size: 1, generatedAt: Self.at(10), validatedAt: Self.at(10),
            freshUntil: Self.at(freshUntil), flags: flags, staleWhileRevalidateSeconds: 30,
            staleIfErrorSeconds: 0, lastModified: nil, date: WallTime(seconds: 0),
            entityTag: .empty)
    }

    private func prognosis(
        _ facts: EntryMetadata, purge: ReuseForecast.PurgeEffect? = nil,
        in window: FenceWindow? = nil,
        now: Int64 = 100
    ) -> ReuseForecast {
        ReuseForecast(
            facts, by: ReusePolicy(), purge: purge, window: window ?? open, fence: .seconds(10),
            now: Self.at(now))
    }

    @Test("what is fresh is given, but for what is to be asked about each time")
    func fresh() {
        #expect(prognosis(facts()) == .fresh(.seconds(100)))
        #expect(prognosis(facts(flags: .noCache)) == .mustValidate(.noCache))
    }

    @Test("what is stale is given within its window")
    func stale() {
        let facts = facts(freshUntil: 80)
        #expect(prognosis(facts) == .stale(.seconds(20)))
        #expect(prognosis(facts, now: 110) == .mustValidate(.stale(.seconds(30))))
        let strict = self.facts(flags: .mustRevalidate, freshUntil: 80)
        #expect(prognosis(strict) == .mustValidate(.stale(.seconds(20))))
    }

    @Test("what a purge makes of its freshness counts from the purge, at most from now")
    func counted() {
        let facts = facts(freshUntil: 200)
        let until = { (purge: ReuseForecast.PurgeEffect?) in
            facts.applying(purge, at: Self.at(100)).freshUntil
        }
        #expect(until(nil) == Self.at(200) && until(.hard) == Self.at(100))
        #expect(until(.soft(since: Self.at(90))) == Self.at(90))
        #expect(until(.soft(since: Self.at(300))) == Self.at(200))
    }

    @Test("what was purged is fetched anew, or stale since the purge")
    func purged() {
        #expect(prognosis(facts(), purge: .hard) == .refetch)
        #expect(prognosis(facts(), purge: .soft(since: Self.at(90))) == .stale(.seconds(10)))
        let long = prognosis(facts(), purge: .soft(since: Self.at(60)))
        #expect(long == .mustValidate(.softPurged))
        let unknown = prognosis(facts(), purge: .soft(since: .distantPast))
        #expect(unknown == .mustValidate(.softPurged))
    }

    @Test("a node that may lack a purge asks, unless the origin was asked within the fence")
    func fenced() {
        #expect(prognosis(facts(), in: closed) == .mustValidate(.fenced))
        var validated = facts()
        validated.validatedAt = Self.at(95)
        #expect(prognosis(validated, in: closed) == .fresh(.seconds(100)))
    }
}
