import Ground
import HTTPRules
import Testing

@Suite("RFC 9110 §7.6: forwarding responses that are not stored")
struct ResponseForwarderTests {
    private func forwarded(
        _ head: ResponseHead, _ rules: ResponseFieldRules = .none, trailers: Bool = false,
        received: WallTime? = nil
    ) -> [String] {
        var bytes: [UInt8] = []
        ResponseForwarder.append(
            head, rules: rules, forwardsTrailers: trailers, receivedAt: received, to: &bytes)
        return bytes.lines
    }

    @Test("End-to-end lines are forwarded in order, without those that frame the body")
    func lines() {
        let head = ResponseHead(
            500, "b: 2", "A: 1", "Content-Length: 5", "Transfer-Encoding: chunked",
            "Connection: x", "X: 1", "Age: 7", "Date: x", "Cache-Status: o; hit", "A: 3",
            "Nuthatch-Cache-Control: no-store", "CDN-Cache-Control: no-store", "Trailer: t",
            "WWW-Authenticate: Basic", "Content-Range: bytes 0-1/2", "Set-Cookie: a=b")
        #expect(
            forwarded(head) == [
                "HTTP/1.1 500 Any", "b: 2", "A: 1", "Age: 7", "Date: x", "Cache-Status: o; hit",
                "A: 3", "CDN-Cache-Control: no-store", "WWW-Authenticate: Basic",
                "Content-Range: bytes 0-1/2", "Set-Cookie: a=b", "Via: 1.1 nuthatch",
            ])
    }

    @Test("A site's rules apply, but the client TTL only to stored responses")
    func rules() {
        let rules = ResponseFieldRules(
            removed: ["server"], lines: ["x-a: 1"], tags: ["xkey"], control: "max-age=60")
        let head = ResponseHead(
            200, "Server: s", "X-A: 0", "xkey: k", "Cache-Control: no-store", "Expires: 0")
        #expect(
            forwarded(head, rules) == [
                "HTTP/1.1 200 Any", "Cache-Control: no-store", "Expires: 0", "x-a: 1",
                "Via: 1.1 nuthatch",
            ])
    }

    @Test("RFC 9110 §7.6.3: Via is extended with the version received")
    func via() {
        let head = ResponseHead(
            status: 200, bytes: "HTTP/1.0 200 OK\r\nVia: 1.0 a\r\n\r\n".bytes,
            lines: [
                FieldLine(
                    id: .via, name: Extent(start: 17, count: 3), value: Extent(start: 22, count: 5))
            ])
        #expect(forwarded(head) == ["HTTP/1.1 200 OK", "Via: 1.0 a", "Via: 1.0 nuthatch"])
    }

    @Test("RFC 9110 §6.6.1, §6.6.2: Date is added if missing, Trailer is kept with trailers")
    func dateAndTrailer() {
        let head = ResponseHead(200, "Trailer: x", "Connection: trailer")
        let lines = forwarded(head, trailers: true, received: WallTime(seconds: 784_111_777))
        #expect(
            lines == [
                "HTTP/1.1 200 Any", "Trailer: x", "Date: Sun, 06 Nov 1994 08:49:37 GMT",
                "Via: 1.1 nuthatch",
            ])
    }

    @Test("RFC 9110 §15.2: the interim responses that are forwarded, and their heads")
    func interim() {
        let passed: [UInt16] = [102, 103, 104, 199]
        let stopped: [UInt16] = [100, 101, 200, 99]
        for status in passed { #expect(ResponseForwarder.forwardsInterim(status)) }
        for status in stopped { #expect(!ResponseForwarder.forwardsInterim(status)) }
        var bytes: [UInt8] = []
        ResponseForwarder.appendInterim(
            ResponseHead(103, "Link: </a>; rel=preload", "Connection: close", "Server: s"),
            rules: ResponseFieldRules(removed: ["server"], lines: ["X: 1"]), to: &bytes)
        #expect(bytes.text == "HTTP/1.1 103 Any\r\nLink: </a>; rel=preload\r\n\r\n")
    }

    @Test(
        "RFC 9110 §6.5.1: fields that must not be trailers are not forwarded as such",
        arguments: [
            ("X-Checksum", true), ("ETag", true), ("Server-Timing", true), ("Repr-Digest", true),
            ("Content-Digest", true), ("Last-Modified", true), ("Link", true), ("Via", true),
            ("grpc-status", true), ("Content-Length", false), ("Transfer-Encoding", false),
            ("Host", false), ("Cache-Control", false), ("CDN-Cache-Control", false),
            ("Nuthatch-Cache-Control", false), ("Max-Forwards", false), ("TE", false),
            ("Authorization", false), ("Proxy-Authorization", false), ("Set-Cookie", false),
            ("Cookie", false), ("WWW-Authenticate", false), ("Content-Encoding", false),
            ("Content-Type", false), ("Content-Range", false), ("Trailer", false),
            ("Expect", false), ("If-Match", false), ("Range", false), ("Age", false),
            ("Date", false), ("Expires", false), ("Location", false), ("Retry-After", false),
            ("Vary", false), ("Warning", false), ("Pragma", false), ("Connection", false),
            ("X-Forwarded-For", false), ("Forwarded", false), ("X-Request-Id", false),
        ])
    func trailers(name: String, expected: Bool) {
        let head = ResponseHead(200, "\(name): x")
        let section = ResponseFieldRules.none.trailers(head.lines, in: head.bytes.span)
        #expect(section == (expected ? "\(name): x\r\n".bytes : []))
    }

    @Test(
        "RFC 9110 §7.6.3: counting our own entries in Via",
        arguments: [
            ([], 0), (["1.1 nuthatch"], 1),
            (["1.1 Nuthatch, 2 x", "1.0 nuthatch (a, nuthatch)"], 2),
            (["1.1 x (1.1 nuthatch, 1.1 nuthatch)"], 0), (["1.1 nuthatch:80"], 0),
            (["1.1  nuthatch\t,,1.1 nuthatch"], 2), (["nuthatch"], 0), (["nuthatch 1.1"], 0),
            (["1.1 a (\\), 1.1 nuthatch)"], 0), (["1.1 a ), 1.1 nuthatch"], 1),
            (["HTTP/1.1 nuthatch"], 1), ([""], 0),
        ])
    func viaCount(values: [String], expected: Int) {
        let head = ResponseHead(status: 200, fields: values.map { "Via: \($0)" })
        #expect(Via.count(head.lines, in: head.bytes.span) == expected)
    }
}
