import Ground
import HTTPRules
import Testing
import Trials

@Suite struct UnsafeMethodInvalidationTests {
    /// The invalidated URLs other than the target itself.
    private func others(
        _ fields: [String], target: String = "/b/c/d;p?q", authority: String = "a.example",
        isSecure: Bool = false
    ) -> [String] {
        let targets = UnsafeMethodInvalidation.expanded(
            isSecure: isSecure, authority: authority.bytes, target: target.bytes,
            response: ResponseHead(status: 201, fields: fields))
        #expect(targets.first == target.bytes)
        return targets.dropFirst().map(\.text)
    }

    @Test("RFC 9111 §4.4: a successful or redirected unsafe or unknown method invalidates")
    func due() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "PURGE", "M-SEARCH", "get"] {
            let bytes = method.bytes
            let rules = MethodProperties(bytes.span, at: 0..<bytes.count)
            for status: UInt16 in [200, 201, 204, 206, 299, 301, 302, 303, 304, 307, 399] {
                #expect(
                    UnsafeMethodInvalidation.isRequired(rules, status: status),
                    "\(method) \(status)")
            }
            for status: UInt16 in [0, 100, 103, 199, 400, 404, 409, 499, 500, 503, 599, 999] {
                #expect(
                    !UnsafeMethodInvalidation.isRequired(rules, status: status),
                    "\(method) \(status)")
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND"] {
            let bytes = method.bytes
            let rules = MethodProperties(bytes.span, at: 0..<bytes.count)
            #expect(!UnsafeMethodInvalidation.isRequired(rules, status: 200), "\(method)")
        }
    }

    private static let references: [(String, String)] = [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"),
        ("g;x?y#s", "/b/c/g;x?y"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"),
        ("../g", "/b/g"), ("../..", "/"), ("../../g", "/g"), ("../../../g", "/g"), ("/./g", "/g"),
        ("/../g", "/g"), ("g.", "/b/c/g."), (".g", "/b/c/.g"), ("..g", "/b/c/..g"),
        ("./../g", "/b/g"), ("g/./h", "/b/c/g/h"), ("g/../h", "/b/c/h"),
        ("g;x=1/../y", "/b/c/y"), ("g?y/../x", "/b/c/g?y/../x"), ("g#s/../x", "/b/c/g"),
        ("/a//b/../c", "/a//c"), ("//a.example", "/"), ("//A.EXAMPLE:80/x", "/x"),
        ("//a.example?y", "/?y"), ("//a.example#s", "/"), ("http://a.example/x/../y", "/y"),
        ("HTTP://A.example.:/x", "/x"), ("http://a.example:080/x", "/x"), ("/%7e%2F", "/%7e%2F"),
        ("/with space?\u{E9}\"<>", "/with%20space?%C3%A9%22%3C%3E"), ("/x|y", "/x|y"), ("/?", "/?"),
        ("http://a.example?y", "/?y"),
    ]

    @Test("RFC 3986 §5.2, §5.4: resolving Location on the same origin", arguments: references)
    func resolved(reference: String, target: String) {
        #expect(others(["Location: \(reference)"]) == [target])
        #expect(others(["Content-Location: \(reference)"]) == [target])
    }

    @Test(
        "RFC 9111 §4.4: other origins and invalid http URIs are not invalidated",
        arguments: [
            "http://b.example/", "https://a.example/", "//b.example/", "http://a.example:8080/x",
            "//a.example:443/", "ftp://a.example/", "http://u@a.example/", "http:/g", "http:g",
            "mailto:a@a.example", "http://", "//", "///x", "http://a.example.b/",
            "http://a.exampl/",
            "http://[a.example]/", "/a\u{1}", "/a\tb", "//a.example:x/", "http://a.example\\@b/",
        ])
    func foreign(reference: String) {
        #expect(others(["Location: \(reference)", "content-location: \(reference)"]) == [])
    }

    @Test("A reference to the target itself adds nothing", arguments: ["", "#s", "d;p?q"])
    func same(reference: String) {
        #expect(others(["Location: \(reference)"]) == [])
    }

    @Test("The origin of a secure request is https with the default port 443")
    func secure() {
        let own = ["https://a.example/1", "//a.example:443/2", "HTTPS://a.example:443/3", "/4"]
        for (number, reference) in own.enumerated() {
            let found = others(["Location: \(reference)"], isSecure: true)
            #expect(found == ["/\(number + 1)"], "\(reference)")
        }
        for reference in ["http://a.example/", "//a.example:80/", "https://a.example:80/"] {
            #expect(others(["Location: \(reference)"], isSecure: true) == [], "\(reference)")
        }
    }

    @Test("A port and an address are part of the origin")
    func authorities() {
        let location = ["Location: http://a.example:8080/x"]
        #expect(others(location, authority: "A.example:8080") == ["/x"])
        #expect(others(location, authority: "a.example") == [])
        #expect(others(["Location: http://[0::1]/x"], authority: "[::1]:80") == ["/x"])
        #expect(others(["Location: //a/x"], authority: "no host") == [])
        #expect(others(["Location: /x"], authority: "no host") == ["/x"])
    }

    @Test("Both fields count, in every line, and each target once")
    func several() {
        let fields = ["Location: /x", "X-Location: /y", "CONTENT-LOCATION: /z", "Location: /x"]
        #expect(others(fields) == ["/x", "/z"])
        #expect(others(["Location: g"], target: "/") == ["/g"])
        #expect(others(["Location: g"], target: "*") == ["/g"])
        #expect(others(["Location: ?y"], target: "/a/../b?q") == ["/a/../b?y"])
    }

    @Test("No target is of another origin, and every target can be encoded")
    func neverForeign() {
        var dice = SplitMix64(seed: 44)
        let pieces = [
            "http:", "https:", "HTTP:", "//", "/", "a.example", "b.example", ":80", ":8080", "@",
            ".",
            "..", "?", "#", "x", " ", "\u{E9}", "\u{1}", "%41", "\\", "[", "ftp:",
        ]
        var named = 0
        for _ in 0..<Trials.count(30_000) {
            let count = Int.random(in: 1..<8, using: &dice)
            let reference = (0..<count).map { _ in pieces.randomElement(using: &dice) ?? "" }
                .joined()
            let found = others(["Location: \(reference)"])
            #expect(found.count <= 1)
            guard let target = found.first else { continue }
            named += 1
            #expect(target.hasPrefix("/") && target.allSatisfy { $0.isASCII && $0 > " " })
            #expect(!target.contains("#"), "\(reference)")
            // An independent resolution gives the same host.
            var key: [UInt8] = []
            let result = RedirectTarget.resolve(
                reference.trimmed().bytes, against: "http://a.example/b/c/d;p?q".bytes, into: &key)
            if result == .normalised {
                #expect(key.text.hasPrefix("http://a.example/"), "\(reference)")
            }
        }
        #expect(named > Trials.count(5000))
    }
}

extension String {
    /// The text as a parser gives a field's value.
    fileprivate func trimmed() -> String {
        String(String(drop { $0 == " " }.reversed()).drop { $0 == " " }.reversed())
    }
}
