import Ground
import HTTPRules
import Origin
import Testing
import Wire

@Suite("Requests to an origin")
struct OriginFetchRequestTests {
    @Test("A request is written from the key and its fields")
    func written() throws {
        let key = Array("http://a.example/b?c".utf8)
        let fields = try ["Accept: image/webp", "If-None-Match: W/\"x\""].map {
            let parts = $0.split(separator: ":", maxSplits: 1).map(String.init)
            return try #require(FieldSetting(name: parts[0], value: parts[1]))
        }
        let request = try #require(OriginFetchRequest(key: key, fields: fields))
        let lines = [
            "GET /b?c HTTP/1.1", "Host: a.example", "User-Agent: nuthatch/0.1",
            "Accept: image/webp", "If-None-Match: W/\"x\"", "", "",
        ]
        #expect(String(decoding: request.bytes, as: UTF8.self) == lines.joined(separator: "\r\n"))
    }

    @Test("The request id is sent, also after a redirect")
    func cause() throws {
        let key = Array("http://a.example/b".utf8)
        let trace = TraceContext(
            parent: Array("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".utf8),
            state: Array("k=v".utf8))
        let cause = RequestCorrelation(RequestID(process: 1, number: 2), trace)
        let request = try #require(
            OriginFetchRequest(key: key, fields: cause.fieldLines(span: 0xAB)))
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
        let request = try #require(OriginFetchRequest(key: key, fields: []))
        #expect(
            request.origin
                == OriginAuthority(
                    host: host, port: UInt16(port), isSecure: url.hasPrefix("https")))
    }

    @Test("A text that is not a key makes no request")
    func noKey() {
        for key in ["a.example", "http://a.example/a b", "http://a.example/\r\nX: y", "//a/b"] {
            #expect(OriginFetchRequest(key: Array(key.utf8), fields: []) == nil)
        }
    }
}
