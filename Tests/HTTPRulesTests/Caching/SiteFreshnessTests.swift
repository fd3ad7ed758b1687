import Ground
import HTTPRules
import Testing
import Trials

private func freshness(
    _ fields: [String], status: UInt16 = 200, policy: FreshnessPolicy = FreshnessPolicy()
) -> Freshness {
    let head = ResponseHead(status: status, fields: fields)
    return Freshness(head, control: EffectiveCacheControl(head), timing: receipt, policy: policy)
}

private func modified(_ secondsBefore: Int64) -> String {
    var date: [UInt8] = []
    HTTPDate.append(WallTime(seconds: receipt.receivedWallTime.seconds - secondsBefore), to: &date)
    return "Last-Modified: " + date.text
}

@Suite struct SiteFreshnessTests {
    private static let sourceTable: [([String], Int64, Freshness.Source)] = [
        (["Cache-Control: s-maxage=1, max-age=2", "Expires: 0"], 1, .sMaxAge),
        (["Cache-Control: max-age=2", "Expires: 0"], 2, .maxAge),
        (["Cache-Control: max-age=2", modified(100_000)], 2, .maxAge),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT", modified(100_000)], 60, .expires),
        (["Expires: 0", modified(100_000)], 0, .expires),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT", "Expires: 0"], 60, .expires),
        (["Expires: x", "Expires: Sun, 06 Nov 1994 08:50:37 GMT"], 0, .expires),
        ([modified(100)], 10, .heuristic),
        ([modified(0)], 0, .heuristic),
        ([modified(-100)], 0, .heuristic),
        ([modified(1_000_000)], 86_400, .heuristic),
        ([modified(100), "Date: Sun, 06 Nov 1994 08:48:37 GMT"], 4, .heuristic),
        ([modified(100), "Date: x"], 10, .heuristic),
        (["Cache-Control: no-cache", modified(100)], 10, .heuristic),
        (["Last-Modified: x"], 0, .none),
        ([], 0, .none),
        (["Cache-Control: public"], 0, .none),
        // RFC 9213 §2.2
        (["CDN-Cache-Control: x", "Cache-Control: max-age=2", "Expires: 0"], 0, .none),
        (["CDN-Cache-Control: x", "Expires: 0", modified(100)], 10, .heuristic),
        (["CDN-Cache-Control: max-age=3", "Cache-Control: s-maxage=2"], 3, .maxAge),
    ]

    @Test(
        "RFC 9111 §4.2.1 and §4.2.2: the source of the freshness lifetime", arguments: sourceTable)
    func sources(fields: [String], seconds: Int64, source: Freshness.Source) {
        let found = freshness(fields)
        #expect(found.lifetime.seconds == seconds)
        #expect(found.source == source)
    }

    @Test(
        "RFC 9111 §4.2.2, RFC 9110 §15.1: heuristic freshness for some statuses, or if public",
        arguments: [201, 202, 302, 303, 307] as [UInt16])
    func guessed(status: UInt16) {
        #expect(freshness([modified(100)], status: status).source == .none)
        let isPublic = freshness([modified(100), "Cache-Control: public"], status: status)
        #expect(isPublic.source == .heuristic && isPublic.lifetime == .seconds(10))
        for known in [200, 203, 204, 300, 301, 308] as [UInt16] {
            #expect(freshness([modified(100)], status: known).source == .heuristic)
        }
    }

    @Test(
        "Errors have no heuristic freshness, although RFC 9110 §15.1 allows it for some",
        arguments: [400, 403, 404, 405, 410, 414, 500, 501, 502, 503, 504, 599] as [UInt16])
    func errors(status: UInt16) {
        let policy = FreshnessPolicy(defaultTTL: .seconds(7))
        for fields in [[modified(100)], [modified(100), "Cache-Control: public"], []] {
            #expect(freshness(fields, status: status).source == .none)
            #expect(freshness(fields, status: status, policy: policy).source == .none)
        }
    }

    @Test("The configured default overrides heuristics but not the origin's directives")
    func defaults() {
        var policy = FreshnessPolicy(defaultTTL: .seconds(7))
        #expect(freshness([], policy: policy).source == .defaultTTL)
        #expect(freshness([modified(100)], policy: policy).lifetime == .seconds(7))
        #expect(freshness(["Expires: 0"], policy: policy).source == .expires)
        #expect(freshness([], status: 302, policy: policy).source == .none)
        #expect(
            freshness(["Cache-Control: public"], status: 302, policy: policy).lifetime
                == .seconds(7))
        policy.defaultsEveryStatus = true
        #expect(freshness([], status: 302, policy: policy).lifetime == .seconds(7))
        policy = FreshnessPolicy()
        policy.isHeuristic = false
        #expect(freshness([modified(100)], policy: policy).source == .none)
    }

    @Test("Configured TTLs of statuses apply if the response has none of its own")
    func negative() {
        var policy = FreshnessPolicy(defaultTTL: .seconds(7))
        policy.negativeTTLs = [
            .init(status: 404, ttl: .seconds(3)), .init(status: 503, ttl: .seconds(1)),
            .init(status: 404, ttl: .seconds(9)),
        ]
        #expect(freshness([], status: 404, policy: policy).lifetime == .seconds(3))
        #expect(freshness([], status: 404, policy: policy).source == .negativeTTL)
        #expect(freshness([], status: 503, policy: policy).lifetime == .seconds(1))
        #expect(
            freshness(["Cache-Control: max-age=5"], status: 404, policy: policy).source == .maxAge)
        #expect(freshness([], status: 410, policy: policy).lifetime == .zero)
        let stored = CacheabilityRules.evaluate(
            ResponseHead(503), to: RequestCacheability(), timing: receipt,
            policy: .site(freshness: policy))
        #expect(stored.notStoredReason == nil)
    }

    @Test("The maximum TTL caps every lifetime")
    func ceiling() {
        var policy = FreshnessPolicy(defaultTTL: .seconds(100))
        policy.ttlMax = .seconds(50)
        #expect(freshness([], policy: policy).lifetime == .seconds(50))
        #expect(freshness(["Cache-Control: max-age=60"], policy: policy).lifetime == .seconds(50))
        #expect(freshness(["Cache-Control: max-age=40"], policy: policy).lifetime == .seconds(40))
        policy.ttlMax = .seconds(-1)
        #expect(freshness(["Cache-Control: max-age=40"], policy: policy).lifetime == .zero)
    }

    @Test("RFC 9111 §4.2.3: Age is at least the origin's and does not decrease")
    func ages() {
        var dice = SplitMix64(seed: 423)
        for _ in 0..<Trials.count(3000) {
            let given = (0..<Int.random(in: 0...3, using: &dice)).map { _ in
                UInt64.random(in: 0...UInt64.max, using: &dice)
                    >> UInt64.random(in: 0..<64, using: &dice)
            }
            let journey = Int64.random(in: 0...9, using: &dice)
            let came = Freshness.ResponseTiming(
                requestedAt: receipt.receivedAt - .seconds(journey),
                receivedAt: receipt.receivedAt, receivedWallTime: receipt.receivedWallTime)
            let head = ResponseHead(status: 200, fields: given.map { "Age: \($0)" })
            let found = Freshness(
                head, control: EffectiveCacheControl(head), timing: came, policy: FreshnessPolicy())
            let least = min(Int64(clamping: given.first ?? 0), DeltaSeconds.max) + journey
            var now = came.receivedAt
            var age = now - found.generatedAt
            #expect(age >= .seconds(least))
            for _ in 0..<4 {
                now = now + Interval(nanoseconds: Int64.random(in: 0...Int64.max / 8, using: &dice))
                #expect(now - found.generatedAt >= age)
                age = now - found.generatedAt
            }
        }
    }

    @Test("RFC 9111 §3: a response that must not be stored is not, whatever else it says")
    func neverStored() {
        var dice = SplitMix64(seed: 3)
        let words = [
            "max-age=60", "s-maxage=60", "public", "no-store", "private", "must-revalidate",
            "immutable", "no-cache", "private=\"a\"", "stale-if-error=60", "foo", "",
        ]
        for _ in 0..<Trials.count(5000) {
            var control: [String] = []
            for _ in 0..<Int.random(in: 0...4, using: &dice) {
                control.append(words[Int.random(in: 0..<words.count, using: &dice)])
            }
            let status = [200, 206, 302, 304, 404, 500][Int.random(in: 0..<6, using: &dice)]
            let hasAuthorization = Bool.random(using: &dice)
            let fields = ["Cache-Control: " + control.joined(separator: ","), modified(100)]
            let found = CacheabilityRules.evaluate(
                ResponseHead(status: UInt16(status), fields: fields),
                to: RequestCacheability(hasAuthorization: hasAuthorization), timing: receipt,
                policy: .site())
            let isShared = !Set(control).isDisjoint(with: [
                "public", "s-maxage=60", "must-revalidate",
            ])
            let isForbidden =
                control.contains("no-store") || control.contains("private") || status == 206
                || status == 304 || hasAuthorization && !isShared
            if isForbidden { #expect(found.notStoredReason != nil && !found.isCollapsible) }
        }
    }
}
