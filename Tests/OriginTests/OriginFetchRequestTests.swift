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
