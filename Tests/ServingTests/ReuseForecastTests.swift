import Cluster
import Ground
import HTTPRules
import Serving
import Testing

@Suite("Forecasts of the reuse of a stored response")
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

    private func forecast(
        _ facts: EntryMetadata, purge: ReuseForecast.PurgeEffect? = nil,
        in window: FenceWindow? = nil,
        now: Int64 = 100
    ) -> ReuseForecast {
        ReuseForecast(
            facts, by: ReusePolicy(), purge: purge, window: window ?? open, fence: .seconds(10),
            now: Self.at(now))
    }

    @Test("A fresh entry is served, unless it must be validated on each use")
    func fresh() {
        #expect(forecast(facts()) == .fresh(.seconds(100)))
        #expect(forecast(facts(flags: .noCache)) == .mustValidate(.noCache))
    }

    @Test("A stale entry is served within its stale-while-revalidate window")
    func stale() {
        let facts = facts(freshUntil: 80)
        #expect(forecast(facts) == .stale(.seconds(20)))
        #expect(forecast(facts, now: 110) == .mustValidate(.stale(.seconds(30))))
        let strict = self.facts(flags: .mustRevalidate, freshUntil: 80)
        #expect(forecast(strict) == .mustValidate(.stale(.seconds(20))))
    }

    @Test("A soft purge ends freshness at the purge, a hard purge now")
    func counted() {
        let facts = facts(freshUntil: 200)
        let until = { (purge: ReuseForecast.PurgeEffect?) in
            facts.applying(purge, at: Self.at(100)).freshUntil
        }
        #expect(until(nil) == Self.at(200) && until(.hard) == Self.at(100))
        #expect(until(.soft(since: Self.at(90))) == Self.at(90))
        #expect(until(.soft(since: Self.at(300))) == Self.at(200))
    }

    @Test("A hard purge forces a refetch, a soft purge makes the entry stale since the purge")
    func purged() {
        #expect(forecast(facts(), purge: .hard) == .refetch)
        #expect(forecast(facts(), purge: .soft(since: Self.at(90))) == .stale(.seconds(10)))
        let long = forecast(facts(), purge: .soft(since: Self.at(60)))
        #expect(long == .mustValidate(.softPurged))
        let unknown = forecast(facts(), purge: .soft(since: .distantPast))
        #expect(unknown == .mustValidate(.softPurged))
    }

    @Test("Behind a closed fence an entry is validated, unless it was within the fence interval")
    func fenced() {
        #expect(forecast(facts(), in: closed) == .mustValidate(.fenced))
        var validated = facts()
        validated.validatedAt = Self.at(95)
        #expect(forecast(validated, in: closed) == .fresh(.seconds(100)))
    }
}
