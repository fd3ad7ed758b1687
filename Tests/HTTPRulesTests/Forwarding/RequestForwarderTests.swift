import Ground
import HTTPRules
import Testing

@Suite("RFC 9110 §7.6: forwarding requests to an origin")
struct RequestForwarderTests {
    let plain = RequestFieldRules(authority: "origin:81".bytes)

    func outcome(
        _ fields: [String], _ rules: RequestFieldRules? = nil,
        purpose: RequestForwarder.Purpose = .pass, method: String = "GET", target: String = "/a?b",
        client: IPAddress? = IPAddress("192.0.2.7"), by peer: IPAddress? = nil,
        isSecure: Bool = false, version: String = "1.1", trailers: Bool = false,
        passage: CDNLoop.LoopIdentifier? = nil, cause: RequestCorrelation? = nil
    ) -> RequestForwarder.Outcome {
        let head = ResponseHead(status: 200, fields: fields)
        let request = ForwardedRequest(
            method: method.bytes, target: target.bytes, host: "site:8080".bytes, client: client,
            remoteAddress: peer ?? client, isSecure: isSecure, version: version)
        return RequestForwarder.forward(
            request, head.lines, in: head.bytes.span, rules: rules ?? plain, purpose: purpose,
            acceptsTrailers: trailers, loopIdentifier: passage,
            correlationLines: cause?.fieldLines(span: 0xAB))
    }

    func lines(_ outcome: RequestForwarder.Outcome) -> [String] {
        guard case .send(let bytes) = outcome else { return ["\(outcome)"] }
        return bytes.lines
    }

    /// The lines other than the request line, Host, Via and the forwarding fields.
    func fields(_ outcome: RequestForwarder.Outcome) -> [String] {
        lines(outcome).dropFirst(2).filter {
            !$0.hasPrefix("X-Forwarded-") && $0 != "Via: 1.1 nuthatch"
        }
    }

    @Test("By default all fields are forwarded except connection-specific and unkeyed ones")
    func transparent() {
        let lines = lines(
            outcome([
                "Host: site:8080", "b: 2", "A: 1", "Connection: x, close", "X: 1", "TE: trailers",
                "Content-Length: 5", "Transfer-Encoding: chunked", "Expect: 100-continue",
                "Range: bytes=0-1", "If-None-Match: \"a\"", "Cache-Control: only-if-cached",
                "Pragma: no-cache", "Cookie: a=b", "Authorization: Basic x", "A: 3", "Upgrade: h2c",
                "Proxy-Authorization: x", "Via: 1.0 y", "Max-Forwards: 0", "User-Agent: u",
                "X-HTTP-Method-Override: DELETE", "user_agent: v", "proxy: http://192.0.2.1",
            ]))
        #expect(
            lines == [
                "GET /a?b HTTP/1.1", "Host: origin:81", "b: 2", "A: 1", "Range: bytes=0-1",
                "If-None-Match: \"a\"", "Cache-Control: only-if-cached", "Pragma: no-cache",
                "Cookie: a=b", "Authorization: Basic x", "A: 3", "Via: 1.0 y", "User-Agent: u",
                "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http",
                "X-Forwarded-Host: site:8080", "Via: 1.1 nuthatch",
            ])
    }

    private static let traced = [
        "X-Request-Id: a b", "A: 1", "traceparent: 00-\(TraceContextTests.trace)-01",
        "tracestate: b=2", "x-request-id: c",
    ]

    @Test("The request id replaces the client's")
    func cause() {
        let trace = TraceContext(
            parent: "00-\(TraceContextTests.trace)-\(TraceContextTests.parent)-01".bytes,
            state: "k=v".bytes)
        let id = RequestID(process: 1, number: 2)
        let named = "X-Request-Id: 00000000000000010000000000000002"
        #expect(
            fields(outcome(Self.traced, cause: RequestCorrelation(id, nil))) == ["A: 1", named])
        for purpose in [RequestForwarder.Purpose.pass, .store(Validation())] {
            let sent = outcome(Self.traced, purpose: purpose, cause: RequestCorrelation(id, trace))
            #expect(
                fields(sent) == [
                    "A: 1", named, "traceparent: 00-\(TraceContextTests.trace)-00000000000000ab-01",
                    "tracestate: k=v",
                ])
        }
        #expect(fields(outcome(Self.traced)) == Self.traced)
    }

    @Test("A rule can remove it or replace it")
    func decidedCause() {
        let trace = TraceContext(
            parent: "00-\(TraceContextTests.trace)-\(TraceContextTests.parent)-01".bytes)
        let cause = RequestCorrelation(RequestID(process: 1, number: 2), trace)
        var rules = plain
        rules.removed = FieldNames(["traceparent", "tracestate"])
        rules.overriddenLines = [FieldSetting(text: "x-request-id: mine")].compactMap { $0 }
        #expect(
            fields(outcome(Self.traced, rules, cause: cause)) == ["A: 1", "x-request-id: mine"])
    }

    @Test(
        "RFC 9112 §3: the target is the client's, below the path of the origin's base URL",
        arguments: [
            ("", "/a?b", "/a?b"), ("/", "/a?b", "/a?b"), ("/x", "/", "/x/"),
            ("/x/", "/a%2F../?", "/x/a%2F../?"), ("/x/y", "//z", "/x/y//z"), ("/x", "*", "*"),
            ("", "", "/"), ("/x", "", "/x/"), ("/x", "?a", "/x/?a"), ("", "*?", "/*?"),
        ])
    func target(base: String, target: String, expected: String) {
        let rules = RequestFieldRules(authority: "o".bytes, basePath: base.bytes)
        let line = lines(outcome([], rules, method: "M-SEARCH", target: target)).first
        #expect(line == "M-SEARCH \(expected) HTTP/1.1")
    }

    @Test(
        "RFC 9110 §7.2: Host is the origin's, the client's or the configured one",
        arguments: [
            (RequestFieldRules.HostRule.origin, "origin:81"), (.client, "site:8080"),
            (.fixed("z".bytes), "z"),
        ])
    func host(rule: RequestFieldRules.HostRule, expected: String) {
        var rules = plain
        rules.host = rule
        #expect(lines(outcome(["Host: any"], rules))[1] == "Host: \(expected)")
    }

    @Test("RFC 9111 §4.3.1: a request for storing has our conditions instead of the client's")
    func stored() {
        let client = [
            "Range: bytes=0-1", "If-Range: \"a\"", "If-Match: \"a\"", "If-None-Match: \"a\"",
            "If-Modified-Since: x", "If-Unmodified-Since: x", "A: 1",
        ]
        #expect(fields(outcome(client, purpose: .store(Validation()))) == ["A: 1"])
        let head = StoredHead(site: ["ETag: \"s\"", "Last-Modified: L"])
        let facts = EntryMetadata(
            size: 1, generatedAt: .zero, freshUntil: .zero, flags: [],
            lastModified: WallTime(seconds: 1), date: WallTime(seconds: 2),
            entityTag: head.entityTag)
        var validation = Validation()
        validation.add(head.bytes, metadata: facts)
        #expect(
            fields(outcome(client, purpose: .store(validation)))
                == ["A: 1", "If-None-Match: \"s\"", "If-Modified-Since: L"])
    }

    @Test(
        "RFC 9111 §5.2.1.7: only-if-cached is removed, all other directives are forwarded",
        arguments: [
            ("max-age=0", "max-age=0"), ("no-cache,  x=\"a,b\"", "no-cache,  x=\"a,b\""),
            ("only-if-cached", nil), ("Only-If-Cached=1", nil), (" , only-if-cached,", nil),
            ("max-age=0, only-if-cached ,x=\"only-if-cached\"", "max-age=0, x=\"only-if-cached\""),
            ("x-only-if-cached", "x-only-if-cached"), ("", ""),
        ] as [(String, String?)])
    func control(value: String, expected: String?) {
        let found = fields(outcome(["cache-control: \(value)"], purpose: .store(Validation())))
        #expect(found == (expected.map { ["cache-control: \($0)"] } ?? []))
    }

    private static let forwards: [(String, String, [String])] = [
        ("OPTIONS", "0", ["answerHere"]),
        ("OPTIONS", "00", ["answerHere"]), ("OPTIONS", "7", ["max-forwards: 6"]),
        ("OPTIONS", "1", ["max-forwards: 0"]), ("OPTIONS", "x", []), ("OPTIONS", "-1", []),
        ("GET", "0", []), ("options", "0", []), ("OPTIONS", "", []),
        ("OPTIONS", "18446744073709551616", []),
    ]

    @Test("RFC 9110 §7.6.2: Max-Forwards is decremented for OPTIONS", arguments: forwards)
    func maxForwards(method: String, value: String, expected: [String]) {
        let found = outcome(["max-forwards: \(value)"], method: method)
        #expect((found == .respondLocally ? ["answerHere"] : fields(found)) == expected)
    }

    @Test("RFC 9110 §10.1.4: TE with trailers is sent on this hop if the client accepts them")
    func trailers() {
        #expect(
            fields(outcome(["TE: trailers, gzip"], trailers: true))
                == ["TE: trailers", "Connection: TE"])
    }

    private static let usual = [
        "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http", "X-Forwarded-Host: site:8080",
    ]
    private static let element = "Forwarded: for=192.0.2.7;host=\"site:8080\";proto=http"
    private static let chains: [(RequestFieldRules.ForwardedRule, [String], [String])] = [
        (.added, [], usual),
        (
            .added,
            [
                "x-forwarded-for: a, b", "X-Forwarded-For: c", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: h", "Forwarded: for=x;by=y",
            ],
            ["X-Forwarded-For: a, b, c, 192.0.2.7", usual[1], usual[2], element]
        ),
        (
            .replaced,
            [
                "X-Forwarded-For: a", "x-forwarded-proto: https", "X-Forwarded-Host: h",
                "forwarded: a",
            ], usual + [element]
        ),
        (.replaced, [], usual),
        (
            .unchanged,
            ["x-forwarded-for: a", "Forwarded: b", "X-Forwarded-Host: h", "X-Forwarded-Proto: a"],
            ["x-forwarded-for: a"]
        ),
        (.unchanged, [], []),
    ]

    @Test(
        "RFC 7239: forwarding fields describe the client as configured for the site",
        arguments: chains)
    func forwarded(
        rule: RequestFieldRules.ForwardedRule, client: [String], expected: [String]
    ) {
        var rules = plain
        rules.forwarded = rule
        let found = lines(outcome(client, rules)).dropFirst(2).dropLast()
        #expect(Array(found) == expected)
    }

    @Test("Behind a trusted proxy, its address is added to those it names")
    func proxied() {
        let sent = ["X-Forwarded-For: 192.0.2.7", "Forwarded: for=x"]
        let proxy = IPAddress("10.0.0.1")
        let found = lines(outcome(sent, by: proxy, isSecure: true)).dropFirst(2).dropLast()
        #expect(
            Array(found) == [
                "X-Forwarded-For: 192.0.2.7, 10.0.0.1", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: site:8080",
                "Forwarded: for=192.0.2.7;host=\"site:8080\";proto=https",
            ])
        var rules = plain
        rules.forwarded = .replaced
        #expect(lines(outcome(sent, rules, by: proxy)).contains("X-Forwarded-For: 192.0.2.7"))
    }

    @Test(
        "Unkeyed fields are forwarded if the site names them",
        arguments: UnkeyedFields.names + ["x_forwarded_host", "a_b"])
    func unkeyed(name: String) {
        let sent = "\(name.uppercased()): sent"
        let given = { (rules: RequestFieldRules) in
            self.lines(self.outcome([sent], rules)).contains(sent)
        }
        var rules = plain
        #expect(!given(rules))
        rules.forwarded = .unchanged
        #expect(!given(rules))
        rules.forwardedNames = FieldNames([name])
        #expect(given(rules))
        rules.forwarded = .added
        #expect(given(rules))
        rules.forwardsOthers = false
        #expect(given(rules))
        rules.removed = FieldNames([name])
        #expect(!given(rules))
    }

    @Test(
        "For a site whose origin has a base path, no target above it is forwarded",
        arguments: [
            ("/a/../b", false), ("/..a", false), ("/a/b/../../c", false), ("/a?/../..", false),
            ("/a/%2e/b", false), ("/%zz/a", false), ("*", false),
            ("/..", true), ("/../private", true), ("/a/../../b", true), ("/%2e%2E/b", true),
            ("/a/%2e./..%2fb", true), ("/..;x=1/b", true), ("/..%3bx/b", true), ("/..\\b", true),
            ("/%5c..%5cb", true), ("/%252e%252e/b", true), ("/a//../../b", true),
            ("/%zz/../../b", true),
        ])
    func outside(target: String, isOutside: Bool) {
        let rules = RequestFieldRules(authority: "o".bytes, basePath: "/public/".bytes)
        let method = target == "*" ? "OPTIONS" : "GET"
        #expect(
            (outcome([], rules, method: method, target: target) == .outsideBasePath) == isOutside)
        // Without a base path there is nothing above.
        #expect(outcome([], method: method, target: target) != .outsideBasePath)
    }

    @Test("RFC 7239 §6: an IPv6 address is quoted, and an unknown one is the token unknown")
    func addresses() {
        let six = lines(outcome(["Forwarded: a"], client: IPAddress("2001:db8::1"), isSecure: true))
        #expect(six.contains("X-Forwarded-For: 2001:db8::1"))
        #expect(six.contains("X-Forwarded-Proto: https"))
        #expect(
            six.contains(
                "Forwarded: for=\"[2001:db8::1]\";host=\"site:8080\";proto=https"))
        let none = lines(outcome(["Forwarded: a", "X-Forwarded-For: b"], client: nil))
        #expect(none.contains("X-Forwarded-For: b"))
        #expect(none.contains("Forwarded: for=unknown;host=\"site:8080\";proto=http"))
    }

    @Test("A rule for a forwarding field overrides the forwarding setting")
    func decided() {
        var rules = plain
        rules.removed = FieldNames(["x-forwarded-host"])
        rules.overriddenLines = [FieldSetting(text: "x-forwarded-proto: https")].compactMap { $0 }
        let found = lines(outcome(["X-Forwarded-Proto: a", "X-Forwarded-Host: b"], rules))
        #expect(
            found.dropFirst(2).dropLast() == [
                "x-forwarded-proto: https", "X-Forwarded-For: 192.0.2.7",
            ])
    }

    @Test("A site can remove and set fields, or allow only those it names")
    func rules() {
        let client = [
            "Cookie: a", "User-Agent: u", "Accept-Language: de", "Content-Type: t", "Range: r",
            "Cache-Control: no-cache", "If-Match: \"a\"", "Content-Foo: 1", "Authorization: z",
        ]
        var rules = plain
        rules.removed = FieldNames(["cookie", "authorization"])
        rules.overriddenLines = [
            FieldSetting(text: "user-agent: me"), FieldSetting(text: "X-Key: 1"),
        ]
        .compactMap { $0 }
        #expect(
            fields(outcome(client, rules)) == [
                "Accept-Language: de", "Content-Type: t", "Range: r", "Cache-Control: no-cache",
                "If-Match: \"a\"", "Content-Foo: 1", "user-agent: me", "X-Key: 1",
            ])
        rules = plain
        rules.forwardedNames = FieldNames(["accept-language"])
        rules.forwardsOthers = false
        #expect(
            fields(outcome(client, rules)) == [
                "Accept-Language: de", "Content-Type: t", "Range: r", "Cache-Control: no-cache",
                "If-Match: \"a\"", "Content-Foo: 1",
            ])
    }

    private static let reductions: [([String], [String])] = [
        ([], ["Accept: image/*,*/*;q=0.8", "Accept-Encoding: identity"]),
        (
            ["Accept: image/avif, image/webp;q=0", "accept-encoding: gzip, br;q=1.0"],
            ["Accept: image/avif,image/*,*/*;q=0.8", "Accept-Encoding: br"]
        ),
        (
            ["Accept: text/html", "Accept: image/jxl", "Accept-Encoding: gzip, deflate"],
            ["Accept: image/jxl,image/*,*/*;q=0.8", "Accept-Encoding: gzip"]
        ),
    ]

    @Test("RFC 9110 §12.5: a site can reduce Accept and Accept-Encoding", arguments: reductions)
    func reduced(client: [String], expected: [String]) {
        var rules = plain
        rules.normalisesAccept = true
        rules.normalisesAcceptEncoding = true
        #expect(fields(outcome(client, rules)) == expected)
        let post = fields(outcome(["Accept: a/json", "accept-encoding: x"], rules, method: "POST"))
        #expect(post == ["Accept: a/json", "accept-encoding: x"])
        rules.normalisesAccept = false
        rules.overriddenLines = [FieldSetting(text: "Accept-Encoding: gzip")].compactMap { $0 }
        #expect(fields(outcome([], rules)) == ["Accept-Encoding: gzip"])
    }

    @Test("RFC 9111 §4.1: variants are selected by the fields as forwarded")
    func selectingFields() {
        var rules = plain
        rules.normalisesAcceptEncoding = true
        rules.removed = FieldNames(["cookie"])
        rules.overriddenLines = [FieldSetting(text: "X-A: 2")].compactMap { $0 }
        let client = ResponseHead(
            200, "Cookie: a", "Accept-Encoding: br, gzip", "X-A: 1", "Accept: x", "Connection: y",
            "Y: 1", "Host: h", "Range: bytes=0-0")
        let request = ForwardedRequest(
            method: "GET".bytes, target: "/".bytes, host: "h".bytes, client: nil,
            remoteAddress: nil,
            isSecure: true)
        let forwarded = RequestForwarder.forwardedFields(
            request, client.lines, in: client.bytes.span, rules: rules)
        let head = ResponseHead(status: 200, bytes: forwarded.bytes, lines: forwarded.lines)
        #expect(
            head.fields == [
                "Host: origin:81", "Accept: x", "X-A: 2", "Accept-Encoding: br",
                "X-Forwarded-Proto: https", "X-Forwarded-Host: h",
            ])
        #expect(head.lines.map(\.id) == [.host, .accept, .other, .acceptEncoding, .other, .other])
    }
}
