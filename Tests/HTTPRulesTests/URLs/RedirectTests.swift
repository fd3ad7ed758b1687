import Ground
import HTTPRules
import Testing

@Suite struct RedirectTests {
    /// Base, Location and the resolved URL; first the examples of RFC 3986 §5.4 that can be http
    /// URLs.
    private static let leading: [(String, String, String)] = [
        ("http://a/b/c/d;p?q", "g", "http://a/b/c/g"),
        ("http://a/b/c/d;p?q", "./g", "http://a/b/c/g"),
        ("http://a/b/c/d;p?q", "g/", "http://a/b/c/g/"),
        ("http://a/b/c/d;p?q", "/g", "http://a/g"),
        ("http://a/b/c/d;p?q", "//g", "http://g/"),
        ("http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"),
        ("http://a/b/c/d;p?q", "g?y", "http://a/b/c/g?y"),
        ("http://a/b/c/d;p?q", "#s", "http://a/b/c/d;p?q"),
        ("http://a/b/c/d;p?q", "g#s", "http://a/b/c/g"),
        ("http://a/b/c/d;p?q", ";x", "http://a/b/c/;x"),
        ("http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"),
        ("http://a/b/c/d;p?q", ".", "http://a/b/c/"),
        ("http://a/b/c/d;p?q", "..", "http://a/b/"),
        ("http://a/b/c/d;p?q", "../../g", "http://a/g"),
        ("http://a/b/c/d;p?q", "../../../g", "http://a/g"),
        ("http://a/b/c/d;p?q", "/./g", "http://a/g"),
        ("http://a/b/c/d;p?q", "g;x=1/../y", "http://a/b/c/y"),
        ("http://a/b/c/d;p?q", "g?y/../x", "http://a/b/c/g?y/../x"),
        ("http://a/", "b", "http://a/b"),
        ("http://a/b", "HTTP://B.Example:80/c", "http://b.example/c"),
        ("https://a:444/b", "//c/d", "https://c/d"),
        ("https://a:444/b", "/d", "https://a:444/d"),
        ("http://a/b", "/with space/ä", "http://a/with%20space/%C3%A4"),
        ("http://a/b", "https://c", "https://c/"),
    ]

    @Test("RFC 3986 §5.2: resolving Location", arguments: leading)
    func resolved(base: String, location: String, target: String) {
        var found: [UInt8] = []
        let result = RedirectTarget.resolve(
            Array(location.utf8), against: base.bytes, into: &found)
        #expect(result == .normalised)
        #expect(String(decoding: found, as: UTF8.self) == target)
    }

    @Test(
        "A Location that is no http or https URL is refused",
        arguments: [
            "mailto:a@b", "data:image/png,x", "file:///etc/passwd", "http:g", "http://", "//",
            "//a b/", "//u:p@a/", "/%zz", "/\u{1}", "host:80/x",
        ])
    func refused(location: String) {
        var found: [UInt8] = []
        let result = RedirectTarget.resolve(
            Array(location.utf8), against: "http://a/b".bytes, into: &found)
        guard case .refused = result else {
            Issue.record("\(location) leads to \(String(decoding: found, as: UTF8.self))")
            return
        }
    }

    // MARK: The redirect's effect on the response after it

    private static let receipt = Freshness.ResponseTiming(
        requestedAt: .zero, receivedAt: .zero, receivedWallTime: WallTime(seconds: 1_000_000_000))

    private func examine(_ redirect: [String], _ fields: [String] = []) -> Cacheability {
        var examination = CacheabilityRules.evaluate(
            ResponseHead(status: 200, fields: ["Content-Type: image/png"] + fields),
            to: RequestCacheability(), timing: Self.receipt,
            policy: .image(defaultTTL: .seconds(3600), types: ImageMediaTypes()))
        let redirect = Redirect(
            head: ResponseHead(status: 302, fields: redirect), timing: Self.receipt,
            url: "http://a/b".bytes)
        examination.limit(by: redirect, defaultTTL: .seconds(3600))
        return examination
    }

    @Test("A response is fresh no longer than the redirect that led to it")
    func freshness() {
        let long = "Cache-Control: max-age=600"
        #expect(examine(["Cache-Control: max-age=60"], [long]).freshness.lifetime == .seconds(60))
        #expect(examine(["Cache-Control: max-age=900"], [long]).freshness.lifetime == .seconds(600))
        #expect(examine([], [long]).freshness.lifetime == .seconds(600))
        #expect(examine([], ["Cache-Control: max-age=9999"]).freshness.lifetime == .seconds(3600))
        #expect(
            examine(["Cache-Control: max-age=60", "Age: 70"], [long]).freshness.lifetime == .zero)
    }

    @Test("A restriction on storing or sharing the redirect applies to the response, too")
    func storing() {
        #expect(examine(["Cache-Control: no-store"]).notStoredReason == .noStore)
        #expect(examine(["Cache-Control: private"]).notStoredReason == .isPrivate)
        #expect(examine(["Vary: *"]).notStoredReason == .varyWildcard)
        for field in ["Cache-Control: no-store", "Cache-Control: private", "Vary: *"] {
            #expect(!examine([field]).isCollapsible)
        }
        #expect(examine([]).notStoredReason == nil && examine([]).isCollapsible)
        #expect(examine(["Cache-Control: no-cache"]).flags.contains(.noCache))
        #expect(
            examine(["Cache-Control: private"], ["Cache-Control: no-store"]).notStoredReason
                == .noStore)
    }

    @Test("Clients and downstream caches get no more freshness than the redirect allows")
    func headForClients() {
        let long = "Cache-Control: public, max-age=600, immutable"
        let cases: [([String], [String], [String])] = [
            (["Cache-Control: max-age=60"], [long], ["max-age=60"]),
            (["Cache-Control: no-store"], [long], ["no-store"]),
            (["Cache-Control: private, max-age=9"], [long], ["private, max-age=9"]),
            (["Cache-Control: no-cache"], [long], ["no-cache, max-age=600"]),
            (["Vary: Accept"], ["Vary: Accept-Encoding"], ["Accept-Encoding", "Accept"]),
            ([], ["Expires: Sun, 06 Nov 1994 08:49:37 GMT"], ["max-age=0"]),
            ([], [], []),
        ]
        for (redirect, fields, expected) in cases {
            let head = ResponseHead(status: 200, fields: ["Content-Type: image/png"] + fields)
            let step = Redirect(
                head: ResponseHead(status: 302, fields: redirect), timing: Self.receipt,
                url: "http://a/b".bytes)
            let made = head.restricted(by: [step], examine(redirect, fields))
            let values = made.lines.filter { $0.id != .contentType }.map {
                made.bytes.text($0.value)
            }
            #expect(values == expected)
            #expect(head.restricted(by: [], examine(redirect, fields)) == head)
        }
    }
}
