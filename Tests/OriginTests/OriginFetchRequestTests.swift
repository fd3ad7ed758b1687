import Ground
import HTTPRules
import Origin
import Testing
import Wire

@Suite("Requests to an origin")
struct OriginFetchRequestTests {
    private func text(
        _ url: String, _ negotiation: Negotiation = [], ifNoneMatch: String = "",
        ifModifiedSince: String = ""
    ) throws -> String {
        let key = Array(url.utf8)
        let request = try OriginFetchRequest(
            key: key.span, negotiation: negotiation, ifNoneMatch: Array(ifNoneMatch.utf8),
            ifModifiedSince: Array(ifModifiedSince.utf8))
        return String(decoding: request.bytes, as: UTF8.self)
    }

    @Test("A request is written from the key, the negotiation and the validators alone")
    func written() throws {
        let written = try text(
            "http://a.example/b?c", [.webp, .brotli], ifNoneMatch: "W/\"x\"",
            ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT")
        var accept: [UInt8] = []
        NegotiationRules.appendAccept([.webp, .brotli], to: &accept)
        let lines = [
            "GET /b?c HTTP/1.1", "Host: a.example", "User-Agent: nuthatch/0.1",
            "Accept: " + String(decoding: accept, as: UTF8.self), "Accept-Encoding: br",
            "If-None-Match: W/\"x\"", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "", "",
        ]
        #expect(written == lines.joined(separator: "\r\n"))
    }

    @Test("What the request is called goes with it, also where a redirect leads")
    func cause() throws {
        let key = Array("http://a.example/b".utf8)
        let trace = TraceContext(
            parent: Array("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".utf8),
            state: Array("k=v".utf8))
        let cause = RequestCause(RequestID(run: 1, number: 2), trace)
        let request = try OriginFetchRequest(
            key: key.span, negotiation: [], causeLines: cause.lines(span: 0xAB))
        let text = String(decoding: request.bytes, as: UTF8.self)
        let lines = [
            "X-Request-Id: 00000000000000010000000000000002",
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01",
            "tracestate: k=v", "", "",
        ]
        #expect(text.hasSuffix("\r\n" + lines.joined(separator: "\r\n")), "\(text)")
    }

    @Test(
        "Host and port are those of the key",
        arguments: [
            ("http://a.example/", "a.example", 80), ("https://a.example/", "a.example", 443),
            ("http://a.example:8080/", "a.example", 8080), ("http://[::1]:81/", "::1", 81),
        ])
    func origin(url: String, host: String, port: Int) throws {
        let key = Array(url.utf8)
        let request = try OriginFetchRequest(key: key.span, negotiation: [])
        #expect(
            request.origin
                == OriginAuthority(
                    host: host, port: UInt16(port), isSecure: url.hasPrefix("https")))
    }

    @Test("A validator that would end its line is refused")
    func injection() {
        #expect(throws: OriginRequestError.invalidValue(.ifNoneMatch)) {
            try text("http://a.example/", ifNoneMatch: "\"x\"\r\nX: y")
        }
        #expect(throws: OriginRequestError.invalidTarget) { try text("a.example") }
    }
}
