import HTTPRules
import Testing

@Suite struct CacheStatusTests {
    private func text(
        _ outcome: CacheStatus.Outcome, _ change: (inout CacheStatus) -> Void = { _ in }
    )
        -> String
    {
        var status = CacheStatus(outcome)
        change(&status)
        var bytes = "x".bytes
        status.append(to: &bytes)
        return String(bytes.text.dropFirst())
    }

    @Test("RFC 9211 §2.1, §2.2: a hit, a reason for forwarding, or neither")
    func outcome() {
        #expect(text(.hit) == "nuthatch; hit")
        #expect(text(.generated) == "nuthatch")
        let reasons = CacheStatus.Reason.allCases.map { text(.forwarded($0)) }
        let expected = [
            "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial",
        ]
        #expect(reasons == expected.map { "nuthatch; fwd=\($0)" })
    }

    @Test("RFC 9211 §2.3 to §2.6: parameters of a forwarded request")
    func forwarded() {
        let all: (inout CacheStatus) -> Void = {
            $0.forwardStatus = 304
            $0.ttl = 30
            $0.isStored = true
            $0.isCollapsed = true
        }
        #expect(
            text(.forwarded(.stale), all)
                == "nuthatch; fwd=stale; fwd-status=304; ttl=30; stored; collapsed")
        #expect(text(.hit, all) == "nuthatch; hit; ttl=30")
        #expect(text(.generated, all) == "nuthatch; ttl=30")
    }

    @Test(
        "RFC 9211 §2.4: remaining freshness, even negative, within the integers of RFC 9651 §3.3.1",
        arguments: [
            (0, "0"), (1, "1"), (-412, "-412"), (2_147_483_648, "2147483648"),
            (.max, "999999999999999"), (.min, "-999999999999999"),
        ] as [(Int64, String)])
    func ttl(seconds: Int64, printed: String) {
        #expect(text(.hit) { $0.ttl = seconds } == "nuthatch; hit; ttl=\(printed)")
    }

    @Test(
        "RFC 9211 §2.7: a key is a string, whatever its bytes",
        arguments: [
            ("//a/b?c", "//a/b?c"), ("", ""), ("a\"b\\c", "a\\\"b\\\\c"),
            ("//a\n0\naccept:b", "//a%0A0%0Aaccept:b"), ("\u{E9}\u{7F}\u{0}", "%E9%7F%00"),
        ])
    func key(bytes: String, printed: String) {
        let key = bytes.unicodeScalars.map { UInt8($0.value) }
        #expect(text(.hit) { $0.key = key } == "nuthatch; hit; key=\"\(printed)\"")
    }

    @Test("RFC 9211 §2.7: a key of up to 200 bytes is written whole, a longer one omitted")
    func longKey() {
        let start = "nuthatch; hit; key=\"".utf8.count
        for (byte, printed) in [(97, 1), (34, 2), (10, 3)] as [(UInt8, Int)] {
            let whole = text(.hit) { $0.key = [UInt8](repeating: byte, count: 200) }
            #expect(whole.utf8.count == start + 200 * printed + 1)
            let long = text(.hit) { $0.key = [UInt8](repeating: byte, count: 201) }
            #expect(long == "nuthatch; hit")
        }
    }

    @Test(
        "RFC 9211 §2.8: details are tokens if possible, otherwise strings",
        arguments: [
            ("memory", "memory"), ("ORIGIN:a/b", "ORIGIN:a/b"), ("*", "*"), ("", "\"\""),
            ("two words", "\"two words\""), ("7up", "\"7up\""), ("a\"b", "\"a\\\"b\""),
        ])
    func detail(text detail: String, printed: String) {
        #expect(text(.generated) { $0.detail = detail } == "nuthatch; detail=\(printed)")
    }

    @Test("RFC 9211 §2: what is written is read as what it was, after the members of other caches")
    func roundTrip() {
        var status = CacheStatus(.forwarded(.varyMiss))
        status.forwardStatus = 200
        status.ttl = -5
        status.isStored = true
        status.isCollapsed = true
        status.isFenced = true
        status.key = "//a/b?\"c\\;d".bytes
        status.detail = "two, words"
        for status in [status, CacheStatus(.generated), CacheStatus(.hit)] {
            for others in ["", "Other; fwd=miss; key=\"a, b\", "] {
                var bytes = others.bytes
                status.append(to: &bytes)
                #expect(CacheStatus(lastMemberOf: bytes) == status)
            }
        }
    }

    @Test(
        "A field that is none, and a reason that is not known, are read as nothing",
        arguments: ["", "nuthatch; hit,", "nuthatch; fwd=?", "nuthatch; fwd=none", "(nuthatch)"])
    func malformed(value: String) {
        #expect(CacheStatus(lastMemberOf: value.bytes) == nil)
    }
}
