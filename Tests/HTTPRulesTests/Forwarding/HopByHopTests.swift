import Ground
import HTTPRules
import Testing

@Suite("RFC 9110 §7.6.1: connection-specific fields are not forwarded")
struct HopByHopTests {
    /// The names of the forwarded lines.
    private func passed(_ fields: [String]) -> [String] {
        let head = ResponseHead(status: 200, fields: fields)
        let hop = HopByHop(head.lines, in: head.bytes.span)
        let lines = head.lines.filter { !hop.contains($0, in: head.bytes.span) }
        return lines.map { head.bytes.text($0.name) }
    }

    @Test(
        "Fields that are connection-specific even if Connection does not name them",
        arguments: [
            "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate",
            "Proxy-Authorization", "Proxy-Authentication-Info", "TE", "Trailer",
            "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "kEEP-aLIVE", "PROXY-CONNECTION",
        ])
    func always(name: String) {
        #expect(passed(["A: 1", "\(name): x", "B: 2"]) == ["A", "B"])
    }

    @Test(
        "Similar fields that are forwarded",
        arguments: [
            "Proxy-Status", "Proxy-Authenticated", "X-Connection", "Trailers", "TE2", "Keep-Alives",
            "Alt-Svc", "Expect", "Date", "Set-Cookie2", "Warning",
        ])
    func never(name: String) {
        #expect(passed(["\(name): x"]) == [name])
    }

    private static let nominations: [([String], [String])] = [
        (["Connection: a", "A: 1", "B: 2"], ["B"]),
        (["A: 1", "B: 2", "Connection: A,b"], []),
        (["Connection: close", "Connection: \t b ,, c", "A: 1", "B: 2", "C: 3"], ["A"]),
        (["Connection: a", "A: 1", "a: 2", "aa: 3"], ["aa"]),
        (["Connection: keep-alive, x-foo", "X-Foo: 1", "X-Foo-Bar: 2"], ["X-Foo-Bar"]),
        (["Connection: etag, expires", "ETag: \"a\"", "Expires: 0"], []),
        (["Connection: ", "A: 1"], ["A"]), (["Connection: \"a\"", "A: 1"], ["A"]),
        (["Connection: a=1", "A: 1"], ["A"]), (["Connection: *", "A: 1"], ["A"]),
    ]

    @Test("Fields nominated by Connection are not forwarded", arguments: nominations)
    func nominated(fields: [String], expected: [String]) {
        #expect(passed(fields) == expected)
    }

    @Test(
        "Connection cannot remove fields that all recipients rely on",
        arguments: [
            "Host", "Content-Length", "Content-Type", "Content-Encoding", "Content-Range",
            "Cache-Control", "Authorization", "Cookie", "Set-Cookie", "Vary", "Date", "Age",
            "Location", "Via", "If-Match", "If-Unmodified-Since", "Max-Forwards", "Forwarded",
            "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "CDN-Cache-Control",
            "Nuthatch-Cache-Control",
        ])
    func protected(name: String) {
        #expect(passed(["Connection: close, \(name), b", "\(name): x", "B: 1"]) == [name])
    }

    @Test("Thousands of nominated fields cost no more than the lines present")
    func many() {
        let names = (0..<20_000).map { "n\($0)" }.joined(separator: ",")
        #expect(passed(["Connection: \(names)", "N19999: 1", "N20000: 2"]) == ["N20000"])
    }
}
