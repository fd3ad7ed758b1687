import Ground
import HTTPRules
import Testing

@Suite struct StoredHeadTests {
    private static let full = ResponseHead(
        200, "Vary: Accept", "Server: x", "ETag: W/\"a\"", "Content-Type: image/png",
        "Set-Cookie: a=b", "Cache-Control: max-age=60", "Date: Thu, 01 Jan 1970 00:00:05 GMT",
        "Content-Length: 99", "Expires: 0", "Content-Language: de", "Age: 5", "X-Any: 1",
        "Content-Disposition: inline", "Last-Modified: Thu, 01 Jan 1970 00:00:05 GMT",
        "Content-Encoding: gzip", "Cache-Control: public", "Transfer-Encoding: chunked",
        "Connection: keep-alive", "Keep-Alive: 5", "Cache-Status: other; hit", "Via: 1.1 x",
        "Accept-Ranges: none", "Location: /x", "Content-Range: bytes 0-1/2", "Trailer: x")

    private let notModified = """
        x-content-type-options: nosniff\r
        etag: W/"a"\r
        last-modified: Thu, 01 Jan 1970 00:00:05 GMT\r
        cache-control: max-age=60\r
        cache-control: public\r
        expires: 0\r
        vary: Accept\r

        """

    @Test("The head of each kind of response is one slice")
    func slices() {
        let head = StoredHead(Self.full.imageResponse, size: 1234)
        let multipart = """
            content-encoding: gzip\r
            content-language: de\r
            content-disposition: inline\r
            accept-ranges: bytes\r

            """ + notModified
        let partial = "content-type: image/png\r\n" + multipart
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n" + partial
        #expect(head.bytes.text(head.whole) == whole)
        #expect(head.bytes.text(head.partial) == partial)
        #expect(head.bytes.text(head.multipart) == multipart)
        #expect(head.bytes.text(head.notModified) == notModified)
        #expect(head.bytes.text(head.entityTag) == "W/\"a\"")
        #expect(head.bytes.text(head.contentType) == "image/png")
    }

    @Test("Without a size there is no Content-Length")
    func noSize() {
        let head = StoredHead(Self.full.imageResponse, size: nil)
        let whole = head.bytes.text(head.whole)
        #expect(whole.hasPrefix("HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n"))
        #expect(!whole.contains("Content-Length"))
    }

    private static let nosniff = "x-content-type-options: nosniff\r\n"
    private static let sandbox =
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; sandbox\r\n"

    @Test("RFC 9110 §15.4.5: a 304 without validators has only the protective fields")
    func bare() {
        let head = StoredHead(ResponseHead(200, "Content-Type: image/gif").imageResponse, size: 0)
        #expect(head.bytes.text(head.notModified) == Self.nosniff && head.entityTag.isEmpty)
        #expect(head.bytes.text(head.whole).contains("Content-Length: 0\r\n"))
    }

    @Test(
        "Types not known to be made of pixels have a policy against scripts",
        arguments: [
            ("image/svg+xml", true), ("IMAGE/SVG+XML; charset=utf-8", true),
            ("image/svg+xml ;x", true), ("image/svg", true), ("image/x-any", true),
            ("text/html", true), ("application/json", true), ("image/png", false),
            ("image/JPEG;q=1", false), ("image/avif", false), ("image/vnd.microsoft.icon", false),
        ])
    func sandbox(type: String, expected: Bool) {
        let head = StoredHead(ResponseHead(200, "Content-Type: \(type)").imageResponse, size: 1)
        for part in [head.whole, head.partial, head.multipart, head.notModified] {
            let text = head.bytes.text(part)
            #expect(text.contains(Self.sandbox) == expected, "\(text)")
            #expect(text.contains(Self.nosniff), "\(text)")
        }
    }

    @Test(
        "A configured type is an attachment, with the origin's file name",
        arguments: [
            ("text/html", nil, "attachment"), ("application/json", "inline", "attachment"),
            ("text/html", "inline; filename=\"a;b.html\"", "attachment; filename=\"a;b.html\""),
            ("text/html", "attachment;filename*=UTF-8''x", "attachment;filename*=UTF-8''x"),
            ("text/html", "\"inline;\"; filename=a", "attachment; filename=a"),
            ("image/png", "inline; filename=a", "inline; filename=a"),
            ("image/svg+xml", "inline", "inline"), ("image/png", nil, nil),
        ] as [(String, String?, String?)])
    func disposition(type: String, origin: String?, expected: String?) {
        let fields =
            ["Content-Type: \(type)"] + (origin.map { ["Content-Disposition: \($0)"] } ?? [])
        let head = StoredHead(ResponseHead(status: 200, fields: fields).imageResponse, size: 1)
        let lines = head.bytes.text(head.partial).split(separator: "\r\n")
        let found = lines.filter { $0.hasPrefix("content-disposition: ") }
        #expect(found.map { String($0.dropFirst(21)) } == (expected.map { [$0] } ?? []))
    }

    @Test("The origin's own policy is not sent beside ours")
    func originPolicy() {
        let head = StoredHead(
            ResponseHead(
                200, "Content-Type: image/svg+xml", "Content-Security-Policy: script-src *",
                "X-Content-Type-Options: none", "Connection: content-security-policy"
            ).imageResponse,
            size: 1)
        let text = head.bytes.text(head.whole)
        #expect(text.contains(Self.sandbox) && text.contains(Self.nosniff))
        #expect(!text.contains("script-src") && !text.contains("none\r\n"))
    }

    @Test("RFC 9110 §7.6.1: fields nominated by Connection are not stored")
    func nominated() {
        let head = StoredHead(
            ResponseHead(
                200, "Content-Type: image/png", "ETag: \"a\"", "Connection: close, ETag",
                "Connection: expires", "Expires: 0"
            ).imageResponse, size: 1)
        let whole = head.bytes.text(head.whole)
        #expect(!whole.contains("etag") && !whole.contains("expires"))
        #expect(whole.contains("content-type") && head.entityTag.isEmpty)
    }

    @Test("Of a singleton field only the first line is stored")
    func doubled() {
        let head = StoredHead(
            ResponseHead(
                200, "Content-Type: image/png", "ETag: \"a\"", "ETag: \"b\"", "Vary: A", "Vary: B"
            ).imageResponse,
            size: 1)
        #expect(
            head.bytes.text(head.notModified) == Self.nosniff
                + "etag: \"a\"\r\nvary: A\r\nvary: B\r\n")
    }

    @Test(
        "RFC 9110 §8.8.3: an invalid tag is forwarded but never compared",
        arguments: ["a", "\"a", "w/\"a\"", "", "\"a\" \"b\"", "'a'"])
    func badTag(tag: String) {
        let head = StoredHead(
            ResponseHead(200, "Content-Type: image/png", "ETag: \(tag)").imageResponse, size: 1)
        #expect(head.entityTag.isEmpty)
        #expect(head.bytes.text(head.notModified) == Self.nosniff + "etag: \(tag)\r\n")
    }
}

@Suite struct FreshenedTests {
    private static let origin = ResponseHead(
        200, "Content-Type: image/png", "ETag: \"a\"", "Cache-Control: max-age=60",
        "Content-Language: de", "Content-Encoding: gzip", "Vary: Accept-Encoding",
        "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT", "Date: Sun, 06 Nov 1994 08:49:30 GMT")

    private func stored(_ response: ResponseHead = origin) -> (StoredHead, EntryMetadata) {
        let head = StoredHead(response.imageResponse, size: 5)
        let examination = CacheabilityRules.evaluate(
            response, to: RequestCacheability(), timing: receipt,
            policy: .image(defaultTTL: .seconds(7), types: ImageMediaTypes()))
        return (head, examination.metadata(size: 5, head: head))
    }

    private struct Freshened: Equatable {
        let examination: Cacheability
        let head: StoredHead
        let facts: EntryMetadata
    }

    private func freshened(
        _ fields: [String], _ response: ResponseHead = origin
    ) -> Freshened? {
        let (head, facts) = stored(response)
        let later = Freshness.ResponseTiming(
            requestedAt: receipt.requestedAt + .seconds(100),
            receivedAt: receipt.receivedAt + .seconds(100),
            receivedWallTime: WallTime(seconds: receipt.receivedWallTime.seconds + 100))
        return freshened(head, facts, ResponseHead(status: 304, fields: fields), later)
    }

    /// The result of a 304 for an image; `nil` if it is for another response.
    private func freshened(
        _ head: StoredHead, _ facts: EntryMetadata, _ response: ResponseHead,
        _ receipt: Freshness.ResponseTiming
    ) -> Freshened? {
        let confirmed = Freshening.responsesToUpdate(
            by: response, of: [Validators(head.bytes, metadata: facts)],
            received: receipt.receivedWallTime)
        guard confirmed == [0] else { return nil }
        let updated = head.updated(with: response, metadata: facts)
        let examination = CacheabilityRules.evaluate(
            updated, to: RequestCacheability(), timing: receipt,
            policy: .image(defaultTTL: .seconds(7), types: ImageMediaTypes()))
        let new = StoredHead(updated.imageResponse, size: facts.size)
        return Freshened(
            examination: examination, head: new,
            facts: examination.metadata(size: facts.size, head: new))
    }

    @Test("RFC 9111 §3.2: fields of a 304 replace stored ones, others stay")
    func replaced() throws {
        let found = try #require(
            freshened([
                "Cache-Control: max-age=10", "Cache-Control: public", "Content-Language: en",
                "Expires: 0", "X-Any: 1",
            ]))
        #expect(
            found.head.bytes.text(found.head.whole) == """
                HTTP/1.1 200 OK\r
                Content-Length: 5\r
                content-type: image/png\r
                content-encoding: gzip\r
                content-language: en\r
                accept-ranges: bytes\r
                x-content-type-options: nosniff\r
                etag: "a"\r
                last-modified: Sun, 06 Nov 1994 08:00:00 GMT\r
                cache-control: max-age=10\r
                cache-control: public\r
                expires: 0\r
                vary: Accept-Encoding\r

                """)
        #expect(found.facts.size == 5)
        #expect(found.facts.freshUntil == found.facts.generatedAt + .seconds(10))
        #expect(found.head.bytes.text(found.facts.entityTag) == "\"a\"")
        #expect(found.examination.notStoredReason == nil)
    }

    @Test("A 304 cannot remove the protective fields")
    func guarded() throws {
        let page = ResponseHead(200, "Content-Type: text/html", "ETag: \"a\"")
        let found = try #require(
            freshened(
                [
                    "Content-Disposition: inline; filename=b", "Content-Security-Policy: none",
                    "Content-Type: image/png",
                ], page))
        #expect(
            found.head.bytes.text(found.head.partial) == """
                content-type: text/html\r
                content-disposition: attachment; filename=b\r
                accept-ranges: bytes\r
                x-content-type-options: nosniff\r
                content-security-policy: default-src 'none'; style-src 'unsafe-inline'; sandbox\r
                etag: "a"\r

                """)
    }

    @Test(
        "RFC 9111 §3.2: a 304 changes no field that describes the body",
        arguments: [
            "Content-Type: text/html", "Content-Encoding: br", "Content-Length: 77",
            "Content-Range: bytes 0-1/2", "Set-Cookie: a=b", "Transfer-Encoding: chunked",
        ])
    func unchanged(field: String) throws {
        let found = try #require(freshened([field]))
        #expect(found.head == stored().0)
        #expect(found.examination.notStoredReason == nil)
    }

    @Test("RFC 9111 §4.3.4: a 304 restores freshness by its own Date and Age")
    func fresh() throws {
        let received = receipt.receivedAt + .seconds(100)
        let plain = try #require(freshened([]))
        #expect(plain.facts.generatedAt == received - .seconds(2))
        #expect(plain.facts.freshUntil == received + .seconds(58))
        let aged = try #require(freshened(["Age: 20"]))
        #expect(aged.facts.generatedAt == received - .seconds(22))
        let dated = try #require(freshened(["Date: Sun, 06 Nov 1994 08:50:37 GMT"]))
        #expect(dated.facts.generatedAt == received - .seconds(40))
        #expect(dated.facts.date == WallTime(seconds: 784_111_837))
    }

    @Test("RFC 9111 §3.2: a 304 can withdraw a permission")
    func forbidden() throws {
        let found = try #require(freshened(["Cache-Control: no-store"]))
        #expect(found.examination.notStoredReason == .noStore)
        let vary = try #require(freshened(["Vary: Accept"]))
        #expect(VaryNames(renderedHead: vary.head.bytes).names == FieldNames(["accept"]))
    }

    @Test("RFC 9110 §7.6.1: fields nominated by Connection in a 304 are not kept")
    func nominated() throws {
        let found = try #require(freshened(["Connection: Expires", "Expires: 0"]))
        #expect(!found.head.bytes.text(found.head.whole).contains("expires"))
        let tagged = try #require(freshened(["Connection: ETag", "ETag: \"a\""]))
        #expect(tagged.head == stored().0)
    }

    private static let validatorTable: [(String, [String], Bool)] = [
        ("\"a\"", ["ETag: \"a\""], true), ("\"a\"", ["ETag: \"b\""], false),
        ("\"a\"", ["ETag: W/\"a\""], true), ("\"a\"", ["ETag: W/\"b\""], false),
        ("W/\"a\"", ["ETag: W/\"a\""], true), ("W/\"a\"", ["ETag: \"a\""], false),
        ("", ["ETag: \"a\""], false), ("\"a\"", ["ETag: nonsense"], true), ("\"a\"", [], true),
        ("\"a\"", ["Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT"], true),
        ("\"a\"", ["Last-Modified: Sun, 06 Nov 1994 08:00:01 GMT"], false),
        ("\"a\"", ["ETag: \"a\"", "Last-Modified: Sun, 06 Nov 1994 08:00:01 GMT"], true),
        ("\"a\"", ["Last-Modified: nonsense"], true),
    ]

    @Test(
        "RFC 9111 §4.3.4: a 304 with another validator is for another response",
        arguments: validatorTable)
    func validators(tag: String, fields: [String], confirms: Bool) {
        let response = ResponseHead(
            200, "Content-Type: image/png", "ETag: \(tag)",
            "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT")
        #expect((freshened(fields, response) != nil) == confirms)
    }

    @Test("A head that a 304 does not change stays the same, however often it is freshened")
    func stable() throws {
        let (head, facts) = stored()
        let found = try #require(freshened(head, facts, ResponseHead(304), receipt))
        #expect(found.head == head)
        let again = try #require(freshened(found.head, found.facts, ResponseHead(304), receipt))
        #expect(again == found)
    }
}
