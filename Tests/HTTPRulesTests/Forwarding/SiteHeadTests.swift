import Ground
import HTTPRules
import Testing

@Suite("The stored head of a site's response has the origin's bytes")
struct SiteHeadTests {
    private static let origin = ResponseHead(
        200, "server: x", "CONTENT-TYPE: text/html;  charset=x", "X-Any: \u{e4}", "ETag: W/\"a\"",
        "Set-Cookie: a=b", "Set-Cookie: c=d", "Cache-Control: MAX-AGE=60", "Date: Any day",
        "Content-Length: 99", "Content-Foo: 1", "Age: 5", "Content-Disposition: inline",
        "Content-Security-Policy: x", "Content-Security-Policy-Report-Only: y",
        "Content-Location: /x", "Content-MD5: m", "Content-Digest: d", "Repr-Digest: r",
        "Digest: g", "Accept-Ranges: none", "Content-Encoding: gzip", "Cache-Status: other; hit",
        "Transfer-Encoding: chunked", "Connection: close, x-hop", "X-Hop: 1", "Via: 1.1 x",
        "CDN-Cache-Control: max-age=5", "Nuthatch-Cache-Control: max-age=6", "Empty: ")

    private static let notModified = """
        server: x\r
        X-Any: \u{c3}\u{a4}\r
        ETag: W/"a"\r
        Set-Cookie: a=b\r
        Set-Cookie: c=d\r
        Cache-Control: MAX-AGE=60\r
        Date: Any day\r
        Content-Security-Policy: x\r
        Content-Security-Policy-Report-Only: y\r
        Content-Location: /x\r
        Cache-Status: other; hit\r
        Via: 1.1 x\r
        CDN-Cache-Control: max-age=5\r
        Empty: \r

        """

    @Test("The head of each kind of response is one slice")
    func slices() {
        let head = StoredHead(
            Self.origin, size: 1234, rules: .none, unstored: FieldNames())
        let multipart = """
            Content-Foo: 1\r
            Content-Disposition: inline\r
            Repr-Digest: r\r
            Digest: g\r
            Accept-Ranges: none\r
            Content-Encoding: gzip\r

            """ + Self.notModified
        let partial = "CONTENT-TYPE: text/html;  charset=x\r\n" + multipart
        let whole =
            "HTTP/1.1 200 Any\r\nContent-Length: 1234\r\nContent-MD5: m\r\nContent-Digest: d\r\n"
            + partial
        #expect(head.bytes.text(head.whole) == whole)
        #expect(head.bytes.text(head.partial) == partial)
        #expect(head.bytes.text(head.multipart) == multipart)
        #expect(head.bytes.text(head.notModified) == Self.notModified)
        #expect(head.bytes.text(head.entityTag) == "W/\"a\"")
        #expect(head.bytes.text(head.contentType) == "text/html;  charset=x")
    }

    @Test(
        "RFC 9112 §4: the reason phrase is the origin's, or the registered one",
        arguments: [
            ("HTTP/1.1 404 Gone fishing\r\n\r\n", 404, "Gone fishing"),
            ("HTTP/1.0 200 \u{e4}\r\n\r\n", 200, "\u{c3}\u{a4}"),
            ("HTTP/1.1 200 \r\n\r\n", 200, ""), ("HTTP/1.1 200\r\n\r\n", 200, ""),
            ("", 200, "OK"), ("", 404, "Not Found"), ("", 103, "Early Hints"), ("", 299, ""),
            ("", 308, "Permanent Redirect"), ("", 599, ""), ("", 504, "Gateway Timeout"),
            ("HTTP/1.1 304 Not Modified\r\n\r\n", 200, "OK"),
            ("HTTP/1.1 200 a\u{1}b\r\n\r\n", 200, "OK"),
        ] as [(String, UInt16, String)])
    func statusLine(bytes: String, status: UInt16, reason: String) {
        let response = ResponseHead(status: status, bytes: bytes.bytes, lines: [])
        let head = StoredHead(response, size: nil, rules: .none, unstored: FieldNames())
        #expect(head.bytes.text == "HTTP/1.1 \(status) \(reason)\r\n")
        #expect(StoredHead.status(head.bytes) == status)
    }

    @Test("RFC 9111 §5.2.2.4, §5.2.2.7: fields named by a qualified directive are not stored")
    func unstored() {
        let fields = ["a: 1", "B: 2", "Set-Cookie: x=y", "C: 3", "ETag: \"x\"", "b: 4"]
        let head = StoredHead(site: fields, unstored: ["set-cookie", "b", "etag"])
        #expect(head.fields == ["a: 1", "C: 3"] && head.entityTag.isEmpty)
    }

    private static let ruleTable: [(ResponseFieldRules, [String])] = [
        (.none, ["Vary: x", "Expires: 0", "Cache-Control: a", "Surrogate-Key: k", "Server: s"]),
        (
            ResponseFieldRules(removed: ["server", "expires"]),
            ["Vary: x", "Cache-Control: a", "Surrogate-Key: k"]
        ),
        (
            ResponseFieldRules(lines: ["server: me", "X-New: 1"]),
            [
                "Vary: x", "Expires: 0", "Cache-Control: a", "Surrogate-Key: k", "server: me",
                "X-New: 1",
            ]
        ),
        (
            ResponseFieldRules(tags: ["surrogate-key", "xkey"]),
            ["Vary: x", "Expires: 0", "Cache-Control: a", "Server: s"]
        ),
        (
            ResponseFieldRules(control: "max-age=60"),
            ["Vary: x", "Surrogate-Key: k", "Server: s", "Cache-Control: max-age=60"]
        ),
        (
            ResponseFieldRules(
                removed: ["cache-control"], lines: ["Expires: 1"], control: "no-cache"),
            ["Vary: x", "Surrogate-Key: k", "Server: s", "Cache-Control: no-cache"]
        ),
    ]

    @Test("A site's rules change the fields that clients get", arguments: ruleTable)
    func rules(rules: ResponseFieldRules, expected: [String]) {
        let fields = [
            "Vary: x", "Expires: 0", "Cache-Control: a", "Nuthatch-Cache-Control: max-age=9",
            "Surrogate-Key: k", "Server: s",
        ]
        #expect(StoredHead(site: fields, rules: rules).fields == expected)
    }

    @Test("A configured line takes the place of the origin's")
    func placed() {
        let rules = ResponseFieldRules(lines: [
            "content-type: image/png", "Content-Language: de", "X: 1",
        ])
        let head = StoredHead(site: ["Content-Type: a/b", "ETag: \"a\""], rules: rules)
        #expect(head.bytes.text(head.contentType) == "image/png")
        #expect(head.bytes.text(head.notModified) == "ETag: \"a\"\r\nX: 1\r\n")
        #expect(head.bytes.text(head.multipart).hasPrefix("Content-Language: de\r\n"))
    }

    @Test("The request id of the stored response is not sent to other requests")
    func requestID() {
        #expect(StoredHead(site: ["A: 1", "x-request-ID: 7", "B: 2"]).fields == ["A: 1", "B: 2"])
    }

    @Test("RFC 9110 §6.6.1: a response without Date gets the time of receipt")
    func date() {
        let received = WallTime(seconds: 784_111_777)
        let line = "Date: Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(StoredHead(site: ["A: 1"], received: received).fields == [line, "A: 1"])
        #expect(StoredHead(site: ["Date: x"], received: received).fields == ["Date: x"])
        #expect(StoredHead(site: ["A: 1"]).fields == ["A: 1"])
    }

    @Test(
        "Fields for framing, storing, dating and validating cannot be configured",
        arguments: [
            ("X-Any", true), ("Cache-Control", true), ("Expires", true), ("Server", true),
            ("Set-Cookie", true), ("Content-Type", true), ("Access-Control-Allow-Origin", true),
            ("Content-Length", false), ("Transfer-Encoding", false), ("connection", false),
            ("Proxy-Connection", false), ("Age", false), ("Date", false), ("ETag", false),
            ("LAST-MODIFIED", false), ("Vary", false), ("Via", false), ("Cache-Status", false),
            ("Content-Range", false), ("Content-Encoding", false), ("X-Request-Id", false),
            ("", false),
        ])
    func mayChange(name: String, expected: Bool) {
        #expect(ResponseFieldRules.mayChange(name.bytes) == expected)
    }

    @Test(
        "RFC 9110 §5.1, §5.5: an invalid line is refused in the configuration",
        arguments: [
            ("A", "b", "b"), ("A", "  b c\t", "b c"), ("A", "", ""),
            ("A", "\u{e4}", "\u{c3}\u{a4}"),
            ("", "b", nil), ("A b", "c", nil), ("A:", "b", nil), ("A", "b\r\nC: d", nil),
            ("A", "b\nc", nil), ("A\r\n", "b", nil), ("A", "b\u{0}", nil), ("A", "b\u{7f}", nil),
            ("\u{e4}", "b", nil),
        ] as [(String, String, String?)])
    func setting(name: String, value: String, expected: String?) {
        #expect(FieldSetting(name: name, value: value)?.value.text == expected)
    }

    @Test(
        "Freshness that is missing from the rendered lines is recorded in flags",
        arguments: [
            ([], ResponseFieldRules.none, []),
            (["Cache-Control: a", "Expires: 0"], .none, []),
            (["nuthatch-cache-control: max-age=1"], .none, .nuthatchControl),
            (["A: 1"], ResponseFieldRules(control: "no-cache"), .overridesControl),
            (["Expires: 0"], ResponseFieldRules(removed: ["expires"]), .overridesControl),
            (["A: 1"], ResponseFieldRules(removed: ["expires"]), []),
            (["A: 1"], ResponseFieldRules(lines: ["cache-control: x"]), .overridesControl),
            (
                ["Nuthatch-Cache-Control: x", "Cache-Control: y"],
                ResponseFieldRules(control: "no-cache"), [.nuthatchControl, .overridesControl]
            ),
        ] as [([String], ResponseFieldRules, EntryFlags)])
    func flags(fields: [String], rules: ResponseFieldRules, expected: EntryFlags) {
        #expect(rules.flags(for: ResponseHead(status: 200, fields: fields)) == expected)
    }

    @Test("The lines of rendered bytes are those that were rendered")
    func linesBack() {
        let head = StoredHead(
            Self.origin, size: 1, rules: .none, unstored: FieldNames())
        let lines = StoredHead.lines(head.bytes)
        let text = lines.map { head.bytes.text($0.name) + ": " + head.bytes.text($0.value) }
        #expect(text == head.fields)
        let again = StoredHead(
            ResponseHead(status: 200, bytes: head.bytes, lines: lines), size: 1, rules: .none,
            unstored: FieldNames())
        #expect(again == head)
    }
}
