import HTTPRules
import Testing

@Suite("Configurable request fields")
struct RequestFieldRulesTests {
    @Test("A site forwards a request's trailer fields if configured, by its field rules")
    func trailers() {
        let sent = ResponseHead(
            200, "X-Sum: 1", "Cookie: a", "Authorization: b", "X-Forwarded-For: c",
            "Connection: d", "X-Secret: e", "x_sum: f", "X-Original-URL: g")
        var rules = RequestFieldRules(authority: "origin:81".bytes)
        rules.removed = FieldNames(["x-secret"])
        #expect(rules.trailers(sent.lines, in: sent.bytes.span).isEmpty)
        rules.forwardsTrailers = true
        #expect(rules.trailers(sent.lines, in: sent.bytes.span) == "X-Sum: 1\r\n".bytes)
    }

    @Test(
        "Fields for framing, and those decided elsewhere, cannot be configured",
        arguments: [
            ("X-Any", true), ("Cookie", true), ("Authorization", true), ("Accept", true),
            ("Cache-Control", true), ("X-Forwarded-For", true), ("Host", false), ("te", false),
            ("Content-Length", false), ("Connection", false), ("Expect", false), ("Range", false),
            ("If-None-Match", false), ("Via", false), ("", false),
        ])
    func mayChange(name: String, expected: Bool) {
        #expect(RequestFieldRules.mayChange(name.bytes) == expected)
    }
}
