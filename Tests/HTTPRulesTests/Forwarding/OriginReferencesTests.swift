import Ground
import HTTPRules
import Testing
import Trials

@Suite("Rewriting an origin's references to itself")
struct OriginReferencesTests {
    /// The rewritten value of a field from an origin at `origin`.
    private func rewritten(
        _ field: String, origin: String = "http://10.0.0.7:9000",
        host: SiteSettings.OriginHostRule = .origin, isSecure: Bool = false
    ) throws -> String {
        let references = OriginReferences(try BaseURL(origin), host: host)
        let head = ResponseHead(status: 302, fields: ["X-A: b", field, "X-C: d"])
        let fields = head.rewritingReferences(references, isSecure: isSecure).fields
        #expect(fields.count == 3 && fields.first == "X-A: b" && fields.last == "X-C: d")
        return fields[1]
    }

    private func location(
        _ value: String, origin: String = "http://10.0.0.7:9000",
        host: SiteSettings.OriginHostRule = .origin, isSecure: Bool = false
    ) throws -> String {
        let field = try rewritten(
            "Location: \(value)", origin: origin, host: host, isSecure: isSecure)
        return String(field.dropFirst("Location: ".utf8.count))
    }

    @Test(
        "A URL of the origin becomes an absolute path",
        arguments: [
            ("http://10.0.0.7:9000/login", "/login"), ("http://10.0.0.7:9000", "/"),
            ("http://10.0.0.7:9000?a=/b", "/?a=/b"), ("http://10.0.0.7:9000#top", "/#top"),
            ("HTTP://10.0.0.7:09000/a?b#c", "/a?b#c"), ("//10.0.0.7:9000/a", "/a"),
            ("http://me:secret@10.0.0.7:9000/a", "/a"), ("http://10.0.0.7:9000/%2F", "/%2F"),
            ("http://10.0.0.7:9000/a b", "/a b"),
        ])
    func own(value: String, path: String) throws {
        #expect(try location(value) == path)
    }

    @Test(
        "A path that begins with two slashes does not become another host",
        arguments: [
            ("http://10.0.0.7:9000//b.example", "/.//b.example"),
            ("http://10.0.0.7:9000/\\b.example", "/./\\b.example"),
            ("http://me@10.0.0.7:9000///b", "/.///b"),
        ])
    func doubled(value: String, path: String) throws {
        #expect(try location(value) == path)
    }

    @Test(
        "URLs of other origins stay as they are",
        arguments: [
            "http://10.0.0.7/", "http://10.0.0.7:9001/", "http://10.0.0.77:9000/",
            "http://b.example/?http://10.0.0.7:9000/", "http://10.0.0.7:9000@b.example/",
            "http://10.0.0.7:9000\\@b.example/", "http:/10.0.0.7:9000/", "http:10.0.0.7:9000",
            "ftp://10.0.0.7:9000/", "https://10.0.0.7:9000/", "//b.example/a", "/a", "a", "?a",
            "#a", "", "http://10.0.0.7:9000\t/a", "/\t/10.0.0.7:9000/", "http://:9000/",
        ])
    func others(value: String) throws {
        #expect(try location(value) == value)
    }

    @Test("The default port may be written or omitted")
    func ports() throws {
        for value in ["http://o.example/a", "http://O.Example.:80/a", "http://o.example:/a"] {
            #expect(try location(value, origin: "http://o.example") == "/a")
            #expect(try location(value, origin: "http://o.example:80") == "/a")
        }
        let secure = "https://o.example:443/a"
        #expect(try location(secure, origin: "https://o.example") == "/a")
        #expect(try location("http://[2001:DB8::1]/a", origin: "http://[2001:db8::1]") == "/a")
    }

    @Test("With the other scheme a URL is the origin's only if the client used that scheme")
    func schemes() throws {
        let value = "https://10.0.0.7:9000/a"
        #expect(try location(value) == value)
        #expect(try location(value, isSecure: true) == "/a")
        #expect(try location("http://10.0.0.7:9000/a", isSecure: true) == "/a")
        // The origin redirects to TLS, which it serves on another port.
        let url = "https://o.example/a"
        for isSecure in [false, true] {
            #expect(try location(url, origin: "http://o.example", isSecure: isSecure) == url)
        }
    }

    @Test(
        "The path of the origin's base URL is removed",
        arguments: [
            ("http://o.example/public/login", "/login"), ("http://o.example/public", "/"),
            ("http://o.example/public/", "/"), ("http://o.example/public?a", "/?a"),
            ("/public/login?a#b", "/login?a#b"), ("/public", "/"), ("/public//b", "/.//b"),
            ("//o.example/public/a", "/a"), ("http://o.example/publicity", nil),
            ("http://o.example/private", nil), ("/private", nil), ("/login", nil), ("login", nil),
            ("../login", nil), ("/public/../private", nil), ("/public/%2e%2e/private", nil),
            ("http://b.example/public/a", nil),
        ] as [(String, String?)])
    func basePath(value: String, path: String?) throws {
        #expect(try location(value, origin: "http://o.example/public/") == path ?? value)
    }

    @Test("An origin with a fixed Host is also recognised by that name")
    func sentHost() throws {
        let host = SiteSettings.OriginHostRule.name("app.internal")
        #expect(try location("http://app.internal/a", host: host) == "/a")
        #expect(try location("http://10.0.0.7:9000/a", host: host) == "/a")
        let other = "http://app.internal:9000/a"
        #expect(try location(other, host: host) == other)
        #expect(try location("http://app.internal/a") == "http://app.internal/a")
    }

    @Test(
        "The URL in Refresh is found as by browsers",
        arguments: [
            ("5; url=http://10.0.0.7:9000/a", "5; url=/a"),
            ("0;URL='http://10.0.0.7:9000/a'", "0;URL='/a'"),
            ("1.5, url = \"http://10.0.0.7:9000/a\" b", "1.5, url = \"/a\" b"),
            ("5 http://10.0.0.7:9000/a", "5 /a"), ("5;http://10.0.0.7:9000", "5;/"),
            ("5; url='http://10.0.0.7:9000/a", "5; url='/a"), ("5", "5"), ("5;", "5;"),
            ("5; url=", "5; url="), ("5; url=http://b.example/", "5; url=http://b.example/"),
            ("url=http://10.0.0.7:9000/a", "url=http://10.0.0.7:9000/a"), ("", ""),
        ])
    func refresh(value: String, rewritten: String) throws {
        #expect(try self.rewritten("Refresh: \(value)") == "Refresh: \(rewritten)")
    }

    @Test("Content-Location is rewritten like Location, other fields are not")
    func fields() throws {
        let url = "http://10.0.0.7:9000/a"
        #expect(try rewritten("content-LOCATION: \(url)") == "content-LOCATION: /a")
        for name in ["Link", "Content-Base", "X-Location", "Set-Cookie"] {
            #expect(try rewritten("\(name): \(url)") == "\(name): \(url)")
        }
    }

    @Test("The head is stored and forwarded with the rewritten value only")
    func rendered() throws {
        let references = OriginReferences(try BaseURL("http://10.0.0.7:9000"), host: .origin)
        let head = ResponseHead(
            status: 302, fields: ["Location: http://10.0.0.7:9000/a", "X-A: b"])
        let rewritten = head.rewritingReferences(references, isSecure: false)
        let stored = StoredHead(rewritten, size: 0, rules: .none, unstored: FieldNames())
        #expect(stored.fields == ["Content-Length: 0", "Location: /a", "X-A: b"])
        var passed: [UInt8] = []
        ResponseForwarder.append(rewritten, rules: ResponseFieldRules(addsVia: false), to: &passed)
        #expect(passed.lines.dropFirst() == ["Location: /a", "X-A: b"])
    }
}
