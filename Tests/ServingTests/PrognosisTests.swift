import Cluster
import Ground
import HTTPRules
import Serving
import Testing

@Suite("What a stored answer would be good for")
struct PrognosisTests {
    private static func at(_ seconds: Int64) -> Instant {
        Instant(nanoseconds: seconds * 1_000_000_000)
    }

    private let open = FenceWindow(currentUntil: .distantFuture, closedAt: .distantFuture)
    private let closed = FenceWindow(currentUntil: Self.at(50), closedAt: Self.at(50))

    private func facts(flags: EntryFlags = [], freshUntil: Int64 = 200) -> EntryFacts {
        EntryFacts(
            size: 1, bornAt: Self.at(10), validatedAt: Self.at(10),
            freshUntil: Self.at(freshUntil), flags: flags, staleWhileRevalidateSeconds: 30,
            staleIfErrorSeconds: 0, lastModified: nil, date: WallTime(seconds: 0),
            entityTag: .empty)
    }

    private func prognosis(
        _ facts: EntryFacts, _ rules: Prognosis.Rules = .site(ReusePolicy()),
        purge: Prognosis.Purge? = nil, in window: FenceWindow? = nil, now: Int64 = 100
    ) -> Prognosis {
        Prognosis(
            facts, by: rules, purge: purge, window: window ?? open, fence: .seconds(10),
            now: Self.at(now))
    }

    @Test("what is fresh is given, of images and of sites")
    func fresh() {
        for rules in [Prognosis.Rules.images, .site(ReusePolicy())] {
            #expect(prognosis(facts(), rules) == .fresh(.seconds(100)))
            #expect(prognosis(facts(flags: .noCache), rules) == .revalidate(.noCache))
        }
    }

    @Test("what is stale is given by sites within their window, and never by the image API")
    func stale() {
        let facts = facts(freshUntil: 80)
        #expect(prognosis(facts) == .stale(.seconds(20)))
        #expect(prognosis(facts, now: 110) == .revalidate(.stale(.seconds(30))))
        #expect(prognosis(facts, .images) == .revalidate(.stale(.seconds(20))))
        let strict = self.facts(flags: .mustRevalidate, freshUntil: 80)
        #expect(prognosis(strict) == .revalidate(.stale(.seconds(20))))
    }

    @Test("what a purge makes of its freshness counts from the purge, at most from now")
    func counted() {
        let facts = facts(freshUntil: 200)
        let until = { (purge: Prognosis.Purge?) in
            facts.counting(purge, at: Self.at(100)).freshUntil
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
        #expect(long == .revalidate(.purgedSoftly))
        let image = prognosis(facts(), .images, purge: .soft(since: Self.at(90)))
        #expect(image == .revalidate(.purgedSoftly))
        let unknown = prognosis(facts(), purge: .soft(since: .distantPast))
        #expect(unknown == .revalidate(.purgedSoftly))
    }

    @Test("a node that may lack a purge asks, unless the origin was asked within the fence")
    func fenced() {
        #expect(prognosis(facts(), .images, in: closed) == .revalidate(.fenced))
        #expect(prognosis(facts(), in: closed) == .revalidate(.fenced))
        var validated = facts()
        validated.validatedAt = Self.at(95)
        #expect(prognosis(validated, .images, in: closed) == .fresh(.seconds(100)))
    }
}
