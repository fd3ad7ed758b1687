import HTTPRules
import Testing

@Suite("What operators may decide of request fields")
struct RequestFieldRulesTests {
    @Test("Trailer fields of a request go on where the site wants them, by the rules of its fields")
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
        "Operators change nothing that frames a request or that is decided elsewhere",
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
