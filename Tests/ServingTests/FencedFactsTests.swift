import Cluster
import Ground
import HTTPRules
import Serving
import Testing

@Suite("What an entry counts as while the node may lack a purge")
struct FencedFactsTests {
    private let fence = Interval.seconds(10)
    private let window = FenceWindow(currentUntil: Self.at(100), closedAt: Self.at(100))

    private static func at(_ seconds: Int64) -> Instant {
        Instant(nanoseconds: seconds * 1_000_000_000)
    }

    private func facts(
        validatedAt: Instant, freshUntil: Instant = Self.at(1_000), flags: EntryFlags = [],
        staleIfError: UInt32 = 0
    ) -> EntryMetadata {
        EntryMetadata(
            size: 1, generatedAt: Self.at(0), validatedAt: validatedAt, freshUntil: freshUntil,
            flags: flags, staleWhileRevalidateSeconds: 500, staleIfErrorSeconds: staleIfError,
            lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty)
    }

    private func fenced(_ facts: EntryMetadata, at seconds: Int64) -> EntryMetadata {
        facts.fenced(by: window, fence, now: Self.at(seconds))
    }

    @Test("an open fence changes nothing")
    func open() {
        let facts = facts(validatedAt: .distantPast)
        #expect(fenced(facts, at: 99) == facts)
    }

    @Test("closed, it is used for one fence from the request that validated it, and not longer")
    func validated() {
        let facts = facts(validatedAt: Self.at(105))
        #expect(decideHit(fenced(facts, at: 114), for: [], now: Self.at(114)) == .serve)
        #expect(decideHit(fenced(facts, at: 115), for: [], now: Self.at(115)) == .revalidate)
    }

    @Test("a validation that is unknown, or of another clock, is none")
    func strange() {
        for validatedAt in [Instant.distantPast, Self.at(500), .distantFuture] {
            let facts = fenced(facts(validatedAt: validatedAt), at: 120)
            #expect(decideHit(facts, for: [], now: Self.at(120)) == .revalidate)
        }
    }

    @Test("neither stale-while-revalidate nor max-stale has it used unasked")
    func unasked() {
        let facts = fenced(facts(validatedAt: Self.at(50)), at: 101)
        let maxStale = Array("max-stale".utf8)
        let line = FieldLine(
            id: .cacheControl, name: .empty, value: Extent(start: 0, count: maxStale.count))
        for control in [.none, RequestCacheControl(lines: [line], in: maxStale.span)] {
            let use = reuse(
                facts, for: control, hasAuthorization: false, policy: ReusePolicy(),
                now: Self.at(101))
            #expect(use == .mustValidate(.stale))
        }
    }

    @Test("for an origin that fails it stands in where that is granted, counted from the closing")
    func standIn() {
        let granted = facts(validatedAt: Self.at(50), staleIfError: 30)
        func stands(_ facts: EntryMetadata, at seconds: Int64) -> Bool {
            isUsableOnError(
                fenced(facts, at: seconds), for: .none, policy: ReusePolicy(),
                now: Self.at(seconds))
        }
        #expect(stands(granted, at: 129))
        #expect(!stands(granted, at: 130))
        #expect(!stands(facts(validatedAt: Self.at(50)), at: 101))
        let strict = facts(
            validatedAt: Self.at(50), flags: .mustRevalidate, staleIfError: 30)
        #expect(!stands(strict, at: 101))
        // What was stale before is not granted more than it was.
        let staleBefore = facts(
            validatedAt: Self.at(50), freshUntil: Self.at(90), staleIfError: 30)
        #expect(stands(staleBefore, at: 119) && !stands(staleBefore, at: 121))
    }
}
