import Ground
import HTTPRules
import Testing

private func examine(
    _ fields: [String], status: UInt16 = 200, extra: [String] = []
) -> Cacheability {
    CacheabilityRules.evaluate(
        ResponseHead(status: status, fields: fields), to: RequestCacheability(), timing: receipt,
        policy: .image(defaultTTL: .seconds(60), types: ImageMediaTypes(extra: extra)))
}

@Suite struct CacheabilityRulesTests {
    private static let storing: [([String], NotStoredReason?)] = [
        ([], nil),
        (["Cache-Control: max-age=60"], nil),
        (["Cache-Control: no-cache"], nil),
        (["Cache-Control: max-age=0, must-revalidate"], nil),
        (["Cache-Control: public"], nil),
        (["Cache-Control: no-store"], .noStore),
        (["Cache-Control: max-age=60, NO-STORE"], .noStore),
        (["Cache-Control: max-age=60", "Cache-Control: no-store"], .noStore),
        (["Cache-Control: no-store, must-understand"], nil),
        (["Cache-Control: private"], .isPrivate),
        (["Cache-Control: private=\"x\""], .isPrivate),
        (["Cache-Control: private, public, max-age=9"], .isPrivate),
        (["Cache-Control: private, s-maxage=9"], .isPrivate),
        (["Cache-Control: private, no-store"], .noStore),
        (["Vary: *"], .varyWildcard), (["Vary: Accept Cookie"], nil),
        (["Vary: Accept, *"], .varyWildcard),
        (["Vary: Accept", "Vary: *"], .varyWildcard),
        (["Vary: **"], nil),
        (["Vary: Cookie, User-Agent, X-Any"], nil),
        (["Set-Cookie: a=b"], nil),
        (["Pragma: no-cache"], nil),
        (["Expires: 0"], nil),
    ]

    @Test("RFC 9111 §3: the responses that a shared cache stores", arguments: storing)
    func stored(fields: [String], expected: NotStoredReason?) {
        #expect(examine(["Content-Type: image/png"] + fields).notStoredReason == expected)
    }

    @Test(
        "RFC 9111 §3 and §3.3: only a 200 is stored, and a part is never stored as the whole",
        arguments: [201, 203, 204, 301, 302, 304, 404, 410, 416, 500, 503] as [UInt16])
    func statuses(status: UInt16) {
        let fields = ["Content-Type: image/png", "Cache-Control: max-age=60, must-understand"]
        #expect(examine(fields, status: status).notStoredReason == .status(status))
        #expect(examine(fields, status: 206).notStoredReason == .partialContent)
    }

    @Test("RFC 9111 §5.2.2.3: must-understand overrides no-store only for understood statuses")
    func mustUnderstand() {
        let fields = ["Content-Type: image/png", "Cache-Control: no-store, must-understand"]
        #expect(examine(fields).isCollapsible)
        #expect(!examine(fields, status: 599).isCollapsible)
    }

    @Test(
        "RFC 9111 §5.2.2: a response for one client is not shared with waiting requests",
        arguments: [
            ("Cache-Control: private", false), ("Cache-Control: no-store", false),
            ("Vary: *", false), ("Cache-Control: no-cache", true),
            ("Cache-Control: max-age=0", true), ("Set-Cookie: a=b", true), ("Vary: Cookie", true),
        ])
    func shareable(field: String, expected: Bool) {
        #expect(examine(["Content-Type: image/png", field]).isCollapsible == expected)
        #expect(examine([field], status: 404).isCollapsible == expected)
    }

    private static let typeTable: [([String], Bool)] = [
        (["image/png"], true), (["IMAGE/PNG"], true), (["image/svg+xml; charset=utf-8"], true),
        (["image/x-icon"], true), (["image/png;"], true), (["image/png ; a=\"b;c\""], true),
        (["image/vnd.microsoft.icon"], true), (["image/"], false), (["image"], false),
        (["images/png"], false), (["image/p ng"], false), (["image/png, image/gif"], false),
        (["text/html"], false), (["application/octet-stream"], false), ([""], false), ([], false),
        (["application/json"], true), (["Application/JSON;charset=utf-8"], true),
        (["application/jsonp"], false), (["application/"], false), (["x image/png"], false),
        (["image/png", "image/png"], true), (["image/png", "IMAGE/png; x"], true),
        (["image/png", "text/html"], false), (["text/html", "image/png"], false),
        (["application/json", "image/png"], false),
    ]

    @Test("RFC 9110 §8.3: images and configured types are accepted", arguments: typeTable)
    func types(values: [String], expected: Bool) {
        let found = examine(values.map { "Content-Type: \($0)" }, extra: ["application/json"])
        #expect(found.isTypeAccepted == expected)
        #expect(found.notStoredReason == (expected ? nil : .contentType))
    }

    private static let flagTable: [([String], EntryFlags)] = [
        ([], []), (["Cache-Control: no-cache"], .noCache),
        (["Cache-Control: max-age=5"], []),
        (
            [
                "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT",
                "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            ], .strongDate
        ),
        (
            [
                "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            ], []
        ),
        (
            [
                "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT",
                "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            ], []
        ),
        (["Last-Modified: Sun, 06 Nov 1990 08:49:36 GMT"], []),
    ]

    @Test("RFC 9111 §5.2.2.4, RFC 9110 §8.8.2.2: flags of a stored response", arguments: flagTable)
    func flags(fields: [String], expected: EntryFlags) {
        #expect(examine(["Content-Type: image/png"] + fields).flags == expected)
    }

    @Test("RFC 9110 §6.6.1: without a valid Date the time of receipt is used")
    func date() {
        #expect(examine(["Content-Type: image/png"]).date == receipt.receivedWallTime)
        #expect(examine(["Date: x"]).date == receipt.receivedWallTime)
        let dated = examine(["Date: Thu, 01 Jan 1970 00:00:05 GMT"])
        #expect(dated.date == WallTime(seconds: 5))
    }

    @Test("The metadata contains the results of the checks")
    func facts() {
        let fields = [
            "Content-Type: image/png", "ETag: \"a\"", "Cache-Control: max-age=100", "Age: 8",
            "Last-Modified: Thu, 01 Jan 1970 00:00:05 GMT",
        ]
        let head = StoredHead(ResponseHead(status: 200, fields: fields).imageResponse, size: 7)
        let facts = examine(fields).metadata(size: 7, head: head)
        #expect(facts.size == 7)
        #expect(facts.generatedAt == receipt.receivedAt - .seconds(10))
        #expect(facts.freshUntil == receipt.receivedAt + .seconds(90))
        #expect(facts.lastModified == WallTime(seconds: 5))
        #expect(head.bytes.text(facts.entityTag) == "\"a\"")
    }
}
