import Ground
import HTTPRules
import Testing

private func examine(
    _ fields: [String], status: UInt16 = 200,
    to request: RequestCacheability = RequestCacheability(),
    policy: StoragePolicy = .site()
) -> Cacheability {
    CacheabilityRules.evaluate(
        ResponseHead(status: status, fields: fields), to: request, timing: receipt, policy: policy)
}

private let modified = "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT"

@Suite struct SiteStoringTests {
    private static let storingTable: [([String], NotStoredReason?)] = [
        (["Cache-Control: max-age=60"], nil),
        (["Cache-Control: max-age=0"], nil),
        (["Cache-Control: max-age=x"], nil),
        (["Cache-Control: s-maxage=60"], nil),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT"], nil),
        (["Expires: 0"], nil),
        ([modified], nil),
        (["ETag: \"a\""], nil),
        (["ETag: W/\"a\""], nil),
        (["Cache-Control: no-cache", "ETag: \"a\""], nil),
        (["Cache-Control: no-cache, max-age=60", modified], nil),
        (["Cache-Control: no-cache=\"a\", max-age=60"], nil),
        (["Cache-Control: max-age=0, must-revalidate", "ETag: \"a\""], nil),
        (["Cache-Control: max-age=0, stale-if-error=60"], nil),
        (["Cache-Control: max-age=60", "Set-Cookie: a=b"], .setCookie),
        (["CDN-Cache-Control: max-age=60", "Set-Cookie: a=b"], nil),
        (["Cache-Control: max-age=60", "Pragma: no-cache"], nil),
        (["Cache-Control: max-age=60", "Vary: Cookie"], nil),
        (["Cache-Control: max-age=60", "Content-Type: text/html"], nil),
        (["Cache-Control: max-age=60", "Authorization: x"], nil),
        // RFC 9111 §5.2.2.5
        (["Cache-Control: no-store, max-age=60"], .noStore),
        (["Cache-Control: max-age=60", "Cache-Control: No-Store"], .noStore),
        (["Cache-Control: max-age=60, x=\"no-store\""], nil),
        (["Cache-Control: no-store, must-understand, max-age=60"], nil),
        // RFC 9111 §5.2.2.7
        (["Cache-Control: private, max-age=60"], .isPrivate),
        (["Cache-Control: private, s-maxage=60, public"], .isPrivate),
        (["Cache-Control: private=\"a\", max-age=60"], nil),
        (["Cache-Control: private=\"\", max-age=60"], .isPrivate),
        (["Cache-Control: private=\"a\", private, max-age=60"], .isPrivate),
        // RFC 9111 §4.1
        (["Cache-Control: max-age=60", "Vary: *"], .varyWildcard),
        (["Cache-Control: max-age=60", "Vary: Accept, *"], .varyWildcard),
        // RFC 9213 §2.2
        (["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"], nil),
        (["Cache-Control: max-age=60", "CDN-Cache-Control: no-store"], .noStore),
        (["Cache-Control: max-age=60", "Nuthatch-Cache-Control: private"], .isPrivate),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT", "CDN-Cache-Control: x"], .neverReusable),
        // Neither a lifetime nor a validator.
        ([], .neverReusable),
        (["Cache-Control: public"], .neverReusable),
        (["Cache-Control: must-revalidate"], .neverReusable),
        (["Cache-Control: no-cache"], .neverReusable),
        (["Cache-Control: no-cache, max-age=60"], .neverReusable),
        (["Cache-Control: max-age=0, must-revalidate"], .neverReusable),
        (["Cache-Control: s-maxage=0"], .neverReusable),
        (["ETag: a"], .neverReusable),
        (["Last-Modified: x"], .neverReusable),
        (["Cache-Control: stale-while-revalidate=60"], .neverReusable),
    ]

    @Test("RFC 9111 §3: the responses that a site stores", arguments: storingTable)
    func stored(fields: [String], expected: NotStoredReason?) {
        #expect(examine(fields).notStoredReason == expected)
    }

    private static let guessed: Set<UInt16> = [
        200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501,
    ]

    @Test(
        "RFC 9111 §3, RFC 9110 §15.1: without a lifetime only some statuses are stored",
        arguments: [
            200, 201, 202, 203, 204, 205, 226, 299, 300, 301, 302, 303, 307, 308, 400, 401, 403,
            404, 405, 409, 410, 414, 421, 429, 451, 499, 500, 501, 502, 503, 504, 599,
        ] as [UInt16])
    func statuses(status: UInt16) {
        let isGuessed = Self.guessed.contains(status)
        #expect(
            examine([modified], status: status).notStoredReason
                == (isGuessed ? nil : .status(status)))
        #expect(
            examine(["ETag: \"a\""], status: status).notStoredReason
                == (isGuessed ? nil : .status(status)))
        let explicit = [
            ["Cache-Control: max-age=60"], ["Cache-Control: s-maxage=60"], ["Expires: 0"],
            ["Cache-Control: public", modified], ["CDN-Cache-Control: max-age=60"],
        ]
        for fields in explicit {
            #expect(examine(fields, status: status).notStoredReason == nil)
        }
        let understood = examine(["Cache-Control: max-age=60, must-understand"], status: status)
        let isKnown = ![226, 299, 429, 451, 499, 599].contains(status)
        #expect(understood.notStoredReason == (isKnown ? nil : .status(status)))
        let lifted = examine(
            ["Cache-Control: max-age=60, no-store, must-understand"], status: status)
        #expect((lifted.notStoredReason == nil) == isKnown)
    }

    @Test(
        "RFC 9111 §3, §3.3: interim, partial, conditional and invalid statuses are not stored",
        arguments: [100, 101, 103, 199, 304, 412, 416, 600, 999] as [UInt16])
    func never(status: UInt16) {
        let fields = ["Cache-Control: max-age=60, public", modified]
        #expect(examine(fields, status: status).notStoredReason == .status(status))
        #expect(examine(fields, status: 206).notStoredReason == .partialContent)
    }

    @Test("RFC 9111 §3: only responses to GET are stored")
    func methods() {
        let fields = ["Cache-Control: max-age=60"]
        #expect(examine(fields, to: RequestCacheability(method: .get)).notStoredReason == nil)
        #expect(examine(fields, to: RequestCacheability(method: .head)).notStoredReason == .method)
        #expect(examine(fields, to: RequestCacheability(method: .other)).notStoredReason == .method)
    }

    @Test("RFC 9111 §5.2.1.5: a request can forbid storing")
    func requestNoStore() {
        let found = examine(["Cache-Control: max-age=60"], to: RequestCacheability(isNoStore: true))
        #expect(found.notStoredReason == .requestNoStore)
        #expect(!found.isCollapsible)
    }

    @Test(
        "RFC 9111 §3.5: with Authorization a response is stored only if it allows that",
        arguments: [
            ("max-age=60", false), ("max-age=60, public", true), ("s-maxage=60", true),
            ("max-age=60, must-revalidate", true), ("max-age=60, proxy-revalidate", false),
            ("max-age=60, no-cache", false), ("max-age=60, immutable", false),
            ("max-age=60, private=\"a\"", false),
        ])
    func authorization(control: String, isShared: Bool) {
        let fields = ["Cache-Control: " + control, "ETag: \"a\""]
        let authorized = examine(fields, to: RequestCacheability(hasAuthorization: true))
        #expect(authorized.notStoredReason == (isShared ? nil : .authorization))
        #expect(authorized.isCollapsible == isShared)
        let open = examine(fields)
        #expect(open.notStoredReason == nil)
        #expect(open.flags.contains(.allowsAuthorization) == isShared)
    }

    @Test("RFC 5861 §4: the statuses that count as an origin's failure")
    func failures() {
        let found = (0...999).filter { StatusRules.isFailure(UInt16($0)) }
        #expect(found == [500, 502, 503, 504])
    }

    @Test("RFC 9111 §7.3: a response with Set-Cookie is private unless configured otherwise")
    func setCookie() {
        let fields = ["Cache-Control: max-age=60", "Set-Cookie: a=b"]
        #expect(examine(fields).notStoredReason == .setCookie)
        #expect(examine(fields, policy: .site(storesSetCookie: true)).notStoredReason == nil)
        #expect(examine(["Cache-Control: max-age=60"]).notStoredReason == nil)
    }

    @Test("Any type is stored")
    func types() {
        let response = examine(["Cache-Control: max-age=60", "Content-Type: text/html"])
        #expect(response.isTypeAccepted && response.notStoredReason == nil)
    }

    @Test(
        "RFC 9111 §4: only responses usable without validation are shared with waiting requests",
        arguments: [
            (["Cache-Control: max-age=60"], true), (["Cache-Control: max-age=60, no-cache"], false),
            (["Cache-Control: max-age=0"], false), (["ETag: \"a\""], false), ([modified], true),
            (["Cache-Control: max-age=60", "Age: 60"], false), (["Vary: *"], false),
            (["Cache-Control: max-age=60, private"], false), ([], false),
            (["Cache-Control: max-age=60, no-store"], false),
            (["Cache-Control: max-age=60, private=\"a\""], true),
        ])
    func shareable(fields: [String], expected: Bool) {
        #expect(examine(fields).isCollapsible == expected)
    }

    private static let flagTable: [(String, EntryFlags)] = [
        ("max-age=60", []), ("no-cache", .noCache), ("no-cache=\"a\", max-age=60", []),
        ("must-revalidate", [.mustRevalidate, .allowsAuthorization]),
        ("proxy-revalidate", .mustRevalidate), ("immutable", .immutable),
        ("s-maxage=60", [.mustRevalidate, .allowsAuthorization]), ("public", .allowsAuthorization),
        (
            "s-maxage=60, immutable, no-cache",
            [.mustRevalidate, .allowsAuthorization, .immutable, .noCache]
        ),
    ]

    @Test("RFC 9111 §5.2.2, RFC 8246 §2: flags of a stored response", arguments: flagTable)
    func flags(control: String, expected: EntryFlags) {
        #expect(examine(["Cache-Control: " + control]).flags == expected)
        #expect(
            examine(["CDN-Cache-Control: " + control, "Cache-Control: no-store"]).flags == expected)
    }

    @Test("RFC 5861 §3 and §4: the metadata has the stale windows in seconds")
    func windows() {
        let found = examine(["Cache-Control: max-age=1, stale-while-revalidate=2, stale-if-error=3"]
        )
        let facts = found.metadata(size: 4, entityTag: .empty)
        #expect(facts.staleWhileRevalidateSeconds == 2 && facts.staleIfErrorSeconds == 3)
        #expect(facts.size == 4)
        let great = examine(["Cache-Control: stale-if-error=99999999999"])
        #expect(great.staleIfErrorSeconds == 2_147_483_648)
        #expect(examine(["Cache-Control: stale-if-error=x"]).staleIfErrorSeconds == 0)
    }

    @Test("RFC 9111 §5.2.2.4, §5.2.2.7: listed fields are not stored")
    func unstored() {
        let found = examine(["Cache-Control: max-age=60, private=\"b, A\", no-cache=\"c\""])
        #expect(found.unstoredFields.names.map(\.text) == ["a", "b", "c"])
        #expect(found.notStoredReason == nil && !found.flags.contains(.noCache))
        #expect(examine(["Cache-Control: private"]).unstoredFields.isEmpty)
    }

    @Test("The source of the directives")
    func sources() {
        #expect(examine(["Cache-Control: max-age=1"]).controlSource == .cacheControl)
        #expect(examine(["CDN-Cache-Control: max-age=1"]).controlSource == .cdn)
    }

    @Test("RFC 9213: images ignore targeted fields, and lists apply to the whole response")
    func images() {
        let image = StoragePolicy.image(defaultTTL: .seconds(60), types: ImageMediaTypes())
        let fields = ["Content-Type: image/png", "CDN-Cache-Control: no-store"]
        #expect(examine(fields, policy: image).notStoredReason == nil)
        let listed = ["Content-Type: image/png", "Cache-Control: private=\"a\", no-cache=\"b\""]
        let found = examine(listed, policy: image)
        #expect(found.notStoredReason == .isPrivate && found.flags.contains(.noCache))
        #expect(found.unstoredFields.isEmpty)
    }
}
