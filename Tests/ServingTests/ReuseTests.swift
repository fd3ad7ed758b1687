import Ground
import HTTPRules
import Serving
import Testing

/// A request's Cache-Control, each directive in a field line of its own.
private func asked(_ directives: String...) -> RequestCacheControl {
    var bytes: [UInt8] = []
    var lines: [FieldLine] = []
    for directive in directives {
        let start = bytes.count
        bytes += directive.utf8
        let value = Extent(start: start, count: bytes.count - start)
        lines.append(FieldLine(id: .cacheControl, name: .empty, value: value))
    }
    return RequestCacheControl(lines: lines, in: bytes.span)
}

/// A response that is fresh for 1,000 s: 100 s old, or `staleSeconds` past its freshness.
private struct Stored {
    var facts: EntryMetadata
    var now = Instant(nanoseconds: 5_100_000_000_000)

    init(
        _ flags: EntryFlags = [], staleSeconds: Int64? = nil, whileRevalidate: UInt32 = 0,
        ifError: UInt32 = 0
    ) {
        let generatedAt = Instant(nanoseconds: 5_000_000_000_000)
        facts = EntryMetadata(
            size: 1, generatedAt: generatedAt, freshUntil: generatedAt + .seconds(1000),
            flags: flags,
            staleWhileRevalidateSeconds: whileRevalidate, staleIfErrorSeconds: ifError,
            lastModified: nil, date: WallTime(seconds: 0), entityTag: .empty)
        if let staleSeconds { now = facts.freshUntil + .seconds(staleSeconds) }
    }

    func reused(
        _ control: RequestCacheControl = .none, authorized: Bool = false,
        _ policy: ReusePolicy = ReusePolicy()
    ) -> Reuse {
        reuse(facts, for: control, hasAuthorization: authorized, policy: policy, now: now)
    }

    func standsIn(_ control: RequestCacheControl = .none, _ policy: ReusePolicy = ReusePolicy())
        -> Bool
    {
        Serving.isUsableOnError(facts, for: control, policy: policy, now: now)
    }
}

@Suite struct ReuseTests {
    @Test("RFC 9111 §4.2: a fresh response is used, a stale one is validated")
    func plain() {
        #expect(Stored().reused() == .fresh)
        #expect(Stored(staleSeconds: -1).reused() == .fresh)
        #expect(Stored(staleSeconds: 0).reused() == .mustValidate(.stale))
        #expect(Stored(staleSeconds: 1).reused() == .mustValidate(.stale))
    }

    @Test("RFC 9111 §5.2.2.4: no-cache forbids use without validation, also on error")
    func noCache() {
        #expect(Stored(.noCache).reused() == .mustValidate(.noCache))
        let stale = Stored([.noCache], staleSeconds: 1, whileRevalidate: 60, ifError: 60)
        #expect(stale.reused() == .mustValidate(.noCache))
        #expect(stale.reused(asked("max-stale")) == .mustValidate(.noCache))
        #expect(!stale.standsIn())
        #expect(!Stored(.noCache, ifError: 60).standsIn())
    }

    @Test("RFC 9111 §3.5: Authorization needs a response that explicitly allows it")
    func authorization() {
        #expect(Stored().reused(authorized: true) == .unusable)
        #expect(Stored(staleSeconds: 1, whileRevalidate: 60).reused(authorized: true) == .unusable)
        #expect(Stored(.allowsAuthorization).reused(authorized: true) == .fresh)
        let stale = Stored(.allowsAuthorization, staleSeconds: 1)
        #expect(stale.reused(authorized: true) == .mustValidate(.stale))
    }

    /// Flags, seconds of staleness (`nil`: 100 s old, fresh for 900 s more), request directives,
    /// and the expected reuse.
    private static let requestTable: [(EntryFlags, Int64?, String, Reuse)] = [
        // RFC 9111 §5.2.1.4
        ([], nil, "no-cache", .mustValidate(.requestNoCache)),
        ([], 1, "no-cache, max-stale", .mustValidate(.requestNoCache)),
        // RFC 9111 §5.2.1.1
        ([], nil, "max-age=0", .mustValidate(.requestMaxAge)),
        ([], nil, "max-age=x", .mustValidate(.requestMaxAge)),
        ([], nil, "max-age=99", .mustValidate(.requestMaxAge)),
        ([], nil, "max-age=100", .fresh),
        ([], nil, "max-age=5000", .fresh),
        ([], 1, "max-age=5000", .mustValidate(.stale)),
        // RFC 9111 §5.2.1.3
        ([], nil, "min-fresh=0", .fresh),
        ([], nil, "min-fresh=900", .fresh),
        ([], nil, "min-fresh=901", .mustValidate(.requestMinFresh)),
        ([], 1, "min-fresh=0", .mustValidate(.requestMinFresh)),
        ([], 1, "min-fresh=1, max-stale", .mustValidate(.requestMinFresh)),
        // RFC 9111 §5.2.1.2
        ([], nil, "max-stale", .fresh),
        ([], 100_000, "max-stale", .stale(.maxStale)),
        ([], 10, "max-stale=10", .stale(.maxStale)),
        ([], 11, "max-stale=10", .mustValidate(.stale)),
        ([], 1, "max-stale=x", .mustValidate(.stale)),
        ([], 10, "max-stale=10, max-age=1010", .stale(.maxStale)),
        ([], 10, "max-stale=10, max-age=1009", .mustValidate(.requestMaxAge)),
        // RFC 9111 §5.2.2.2
        (.mustRevalidate, nil, "max-stale", .fresh),
        (.mustRevalidate, 1, "max-stale", .mustValidate(.stale)),
        // RFC 9111 §5.2.1.5 and §5.2.1.7: neither prevents the use of a stored response
        ([], nil, "no-store", .fresh),
        ([], nil, "only-if-cached", .fresh),
        ([], 1, "only-if-cached", .mustValidate(.stale)),
        ([], 1, "only-if-cached, max-stale", .stale(.maxStale)),
        // RFC 8246 §2
        (.immutable, nil, "max-age=0", .fresh),
        (.immutable, nil, "max-age=50", .fresh),
        (.immutable, nil, "no-cache", .mustValidate(.requestNoCache)),
        (.immutable, nil, "max-age=0, no-cache", .mustValidate(.requestNoCache)),
        (.immutable, nil, "min-fresh=901", .mustValidate(.requestMinFresh)),
        (.immutable, 1, "max-age=0", .mustValidate(.requestMaxAge)),
        (.immutable, 1, "foo", .mustValidate(.stale)),
        ([.immutable, .noCache], nil, "max-age=0", .mustValidate(.noCache)),
    ]

    @Test("RFC 9111 §5.2.1, RFC 8246 §2: request directives", arguments: requestTable)
    func requests(flags: EntryFlags, staleSeconds: Int64?, directives: String, expected: Reuse) {
        let stored = Stored(flags, staleSeconds: staleSeconds)
        #expect(stored.reused(asked(directives)) == expected)
    }

    @Test("RFC 9111 §5.2.1.1: no response is new enough for max-age=0")
    func justBorn() {
        var stored = Stored()
        stored.now = stored.facts.generatedAt
        #expect(stored.reused(asked("max-age=0")) == .mustValidate(.requestMaxAge))
        #expect(stored.reused(asked("max-age=1")) == .fresh)
    }

    /// Flags, seconds of staleness, request directives, and the expected reuse with
    /// `stale-while-revalidate=60`.
    private static let whileTable: [(EntryFlags, Int64, String, Reuse)] = [
        ([], 0, "", .stale(.whileRevalidate)), ([], 59, "", .stale(.whileRevalidate)),
        ([], 60, "", .mustValidate(.stale)), ([], 61, "", .mustValidate(.stale)),
        (.mustRevalidate, 1, "", .mustValidate(.stale)),
        (.immutable, 1, "", .stale(.whileRevalidate)),
        ([], 1, "no-cache", .mustValidate(.requestNoCache)),
        ([], 1, "max-age=0", .mustValidate(.requestMaxAge)),
        ([], 1, "max-age=5000", .mustValidate(.stale)),
        ([], 1, "max-age=5000, max-stale", .stale(.whileRevalidate)),
        ([], 5, "max-stale=10", .stale(.whileRevalidate)),
        ([], 15, "max-stale=10", .mustValidate(.stale)), ([], 100, "max-stale", .stale(.maxStale)),
        ([], 1, "min-fresh=1", .mustValidate(.requestMinFresh)),
    ]

    @Test(
        "RFC 5861 §3: stale-while-revalidate applies unless another directive forbids it",
        arguments: whileTable)
    func whileRevalidate(
        flags: EntryFlags, staleSeconds: Int64, directives: String, expected: Reuse
    ) {
        let stored = Stored(flags, staleSeconds: staleSeconds, whileRevalidate: 60)
        #expect(stored.reused(asked(directives)) == expected)
    }

    /// Flags, seconds of staleness, `stale-if-error` of the response and of the request, grace, and
    /// whether the response may replace an error.
    private static let errorTable: [(EntryFlags, Int64, UInt32, String, Int64, Bool)] = [
        ([], 1, 0, "", 0, false), ([], 59, 60, "", 0, true), ([], 60, 60, "", 0, false),
        ([], 59, 0, "stale-if-error=60", 0, true), ([], 60, 0, "stale-if-error=60", 0, false),
        ([], 59, 0, "", 60, true), ([], 60, 0, "", 60, false),
        ([], 59, 1, "stale-if-error=2", 60, true),
        ([], 10, 60, "stale-if-error=1", 0, true), ([], 1, 60, "no-cache", 60, false),
        ([], 1, 60, "max-age=0", 0, true), ([], 1, 60, "min-fresh=5", 0, true),
        (.mustRevalidate, 1, 60, "stale-if-error=60", 60, false), (.immutable, 1, 60, "", 0, true),
        ([], -1, 0, "max-age=0", 0, true), ([], -1, 0, "no-cache", 0, false),
        (.mustRevalidate, -1, 0, "max-age=0", 0, true),
    ]

    @Test(
        "RFC 5861 §4, RFC 9111 §5.2.2.2: stale responses in place of errors", arguments: errorTable)
    func error(
        flags: EntryFlags, staleSeconds: Int64, own: UInt32, directives: String, grace: Int64,
        expected: Bool
    ) {
        var policy = ReusePolicy()
        policy.grace = .seconds(grace)
        let stored = Stored(flags, staleSeconds: staleSeconds, ifError: own)
        #expect(stored.standsIn(asked(directives), policy) == expected)
    }

    @Test("RFC 9111 §4.2.4: must-revalidate and no-cache forbid stale use, whatever requests say")
    func neverStale() {
        var dice = SplitMix64(seed: 424)
        let words = [
            "max-stale", "max-stale=9", "max-age=9000", "stale-if-error=99", "foo", "no-store",
        ]
        for _ in 0..<5000 {
            let flags = EntryFlags(rawValue: UInt16.random(in: 0..<32, using: &dice))
            let stored = Stored(
                flags, staleSeconds: Int64.random(in: 0...100, using: &dice),
                whileRevalidate: UInt32.random(in: 0...100, using: &dice),
                ifError: UInt32.random(in: 0...100, using: &dice))
            var policy = ReusePolicy()
            policy.grace = .seconds(Int64.random(in: 0...100, using: &dice))
            let control = asked(words[Int.random(in: 0..<words.count, using: &dice)])
            let isAuthorized = Bool.random(using: &dice)
            let found = stored.reused(control, authorized: isAuthorized, policy)
            #expect(found != .fresh)
            guard flags.contains(.mustRevalidate) || flags.contains(.noCache) else { continue }
            if case .stale = found { Issue.record("\(stored) is used stale") }
            #expect(!stored.standsIn(control, policy))
        }
    }

    @Test("With and without request directives the same responses are fresh")
    func shortWay() {
        var dice = SplitMix64(seed: 42)
        for _ in 0..<2000 {
            let flags = EntryFlags(rawValue: UInt16.random(in: 0..<32, using: &dice))
            let stored = Stored(flags, staleSeconds: Int64.random(in: -5...5, using: &dice))
            let short = stored.reused()
            // A directive that restricts nothing, so that the control is not empty.
            let long = stored.reused(asked("no-store"))
            #expect(short == long)
        }
    }
}
