import Cluster
import Ground
import HTTPRules
import Serving
import Testing

@Suite("Freshness of entries while the fence is closed")
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

    @Test("An open fence changes nothing")
    func open() {
        let facts = facts(validatedAt: .distantPast)
        #expect(fenced(facts, at: 99) == facts)
    }

    @Test("A closed fence allows use for one fence interval from the validating request")
    func validated() {
        let facts = facts(validatedAt: Self.at(105))
        #expect(decideHit(fenced(facts, at: 114), for: [], now: Self.at(114)) == .serve)
        #expect(decideHit(fenced(facts, at: 115), for: [], now: Self.at(115)) == .revalidate)
    }

    @Test("A validation time that is unknown or in the future does not count")
    func strange() {
        for validatedAt in [Instant.distantPast, Self.at(500), .distantFuture] {
            let facts = fenced(facts(validatedAt: validatedAt), at: 120)
            #expect(decideHit(facts, for: [], now: Self.at(120)) == .revalidate)
        }
    }

    @Test("Neither stale-while-revalidate nor max-stale allows use without validation")
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

    @Test("stale-if-error applies if granted, counted from the closing of the fence")
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
        // An entry that was stale before the closing gets no longer window than before.
        let staleBefore = facts(
            validatedAt: Self.at(50), freshUntil: Self.at(90), staleIfError: 30)
        #expect(stands(staleBefore, at: 119) && !stands(staleBefore, at: 121))
    }
}
