import Ground
import HTTPRules
import Testing

@Suite("Validation of a head rendered by another process")
struct StoredHeadCheckTests {
    private static let image = StoredHead(
        ResponseHead(
            200, "ETag: W/\"a\"", "Content-Type: image/png", "Cache-Control: max-age=60",
            "Content-Language: de", "Vary: Accept"
        ).imageResponse,
        size: 12)

    private static let facts = EntryMetadata(
        size: 12, generatedAt: .zero, freshUntil: .zero, flags: [], lastModified: nil,
        date: WallTime(seconds: 0), entityTag: .empty)

    /// The error of a head; `nil` if it is valid.
    private func fault(
        _ head: StoredHead, flags: EntryFlags = [], size: UInt64? = 12
    ) -> StoredHeadFault? {
        do throws(StoredHeadFault) {
            try head.validate(flags, size: size)
            return nil
        } catch {
            return error
        }
    }

    /// The image's head with one text replaced by another of equal length, so that all offsets stay
    /// valid.
    private func changed(_ text: String, to other: String) -> StoredHead {
        #expect(text.utf8.count == other.utf8.count && Self.image.bytes.text.contains(text))
        let halves = Self.image.bytes.text.split(
            separator: text, maxSplits: 1, omittingEmptySubsequences: false)
        return Self.image.moved(bytes: (halves[0] + other + halves[1]).bytes)
    }

    @Test("A head rendered here is valid, with and without a size")
    func own() {
        #expect(fault(Self.image) == nil)
        let open = StoredHead(ResponseHead(200, "Content-Type: image/png"), size: nil)
        #expect(fault(open, size: nil) == nil)
        let site = StoredHead(
            site: ["Date: x", "Content-Type: a/b", "Set-Cookie: a", "ETag: \"b\"", "Empty: "],
            status: 404, size: 12)
        #expect(fault(site, flags: .isDated) == nil)
        #expect(fault(StoredHead(site: [], status: 204), size: 0) == nil)
    }

    @Test(
        "A byte that no line may contain is an error",
        arguments: [
            ("W/\"a\"", "W/\r\n:"), ("W/\"a\"", "W/\"\n\""), ("W/\"a\"", "W/\"\0\""),
            ("image/png", "image\r\n b"), ("language: ", "language:\t"), ("etag: ", "et g: "),
            ("etag: ", ": tag:"), ("Accept\r\n", "Accept\r "), ("Accept\r\n", "Accepts\n"),
        ])
    func lines(text: String, other: String) throws {
        let found = try #require(fault(changed(text, to: other)))
        guard case .fieldLine = found else {
            Issue.record("\(found)")
            return
        }
    }

    @Test(
        "A status line of no stored response is an error",
        arguments: ["HTTP/1.0 200", "HTTP/1.1 2x0", "HTTP/1.1 199", "HTTP/1.1 206", "HTTP/1.1 304"])
    func statusLine(text: String) {
        #expect(fault(changed("HTTP/1.1 200", to: text)) == .statusLine)
        for count in 0..<17 {
            let cut = Self.image.moved(bytes: Array(Self.image.bytes.prefix(count)))
            #expect(fault(cut) == .statusLine)
        }
    }

    @Test("A length other than the body's is an error")
    func length() {
        #expect(fault(Self.image, size: 13) == .length)
        #expect(fault(Self.image, size: nil) == .length)
        #expect(fault(changed("Content-Length: 12", to: "Content-Length: 1x")) == .length)
        #expect(fault(changed("Content-Length", to: "content-Length")) == nil)
        #expect(fault(changed("Content-Length", to: "Content-Lengty")) == .length)
        // In each of the parts, which have their own.
        #expect(fault(changed("content-language: de", to: "content-length: 1234")) == .length)
        #expect(fault(changed("cache-control: max-age", to: "content-length: 000012")) == .length)
        let site = StoredHead(site: ["X: content"], status: 204, size: 12)
        #expect(fault(site) == .length)
        #expect(fault(StoredHead(site: [], status: 204), size: 1) == .length)
    }

    @Test(
        "A field that is set for each response, or connection-specific, is an error",
        arguments: [
            "connection: ab", "transfer-encoding: a", "keep-alive: a", "trailer: a", "upgrade: h2c",
            "proxy-connection: a", "age: 1", "date: x",
        ])
    func fields(line: String) throws {
        let name = line.prefix { $0 != ":" }
        let head = StoredHead(
            site: ["X-Any: a", String(repeating: "x", count: name.utf8.count) + ": b"], size: 12)
        let text = head.bytes.text.split(
            separator: String(repeating: "x", count: name.utf8.count) + ":",
            omittingEmptySubsequences: false)
        let lying = head.moved(bytes: (text[0] + name + ":" + text[1]).bytes)
        #expect(fault(head) == nil)
        guard case .forbiddenField = try #require(fault(lying)) else {
            Issue.record("\(line)")
            return
        }
    }

    @Test("An invalid tag or type, or one outside the head, is an error")
    func extents() {
        let tag = Self.image.entityTag
        let inside = Extent(start: Int(tag.start) + 2, count: Int(tag.count) - 2)
        let beyond = Extent(start: Self.image.bytes.count - 2, count: 40)
        for lie in [inside, beyond, Self.image.contentType] {
            #expect(fault(Self.image.moved(entityTag: lie)) == .entityTag)
        }
        #expect(fault(changed("W/\"a\"", to: "W/'a'")) == .entityTag)
        for lie in [tag, beyond, Extent(start: 0, count: 4)] {
            #expect(fault(Self.image.moved(contentType: lie)) == .contentType)
        }
        let nothing = Extent(start: 4_000, count: 0)
        #expect(fault(Self.image.moved(entityTag: nothing)) == .entityTag)
        #expect(fault(Self.image.moved(contentType: nothing)) == .contentType)
        #expect(fault(Self.image.moved(entityTag: .empty, contentType: .empty)) == nil)
    }

    @Test("A part that starts within a line, out of order or beyond the end is an error")
    func places() {
        let head = Self.image
        for place in [0, 1, head.partialStart + 1, head.bytes.count + 1, .max] {
            #expect(fault(head.moved(partialStart: place)) != nil, "\(place)")
            #expect(fault(head.moved(multipartStart: place)) != nil, "\(place)")
            #expect(fault(head.moved(notModifiedStart: place)) != nil, "\(place)")
        }
        #expect(fault(head.moved(multipartStart: head.bytes.count)) == .partOffsets)
        #expect(fault(head.moved(multipartStart: head.partialStart)) == .contentType)
        #expect(fault(head.moved(notModifiedStart: head.multipartStart)) == nil)
    }

    @Test("Impossible metadata is an error")
    func facts() {
        for flags: EntryFlags in [.isVariantIndex, .isHitForMiss, .isFenced] {
            #expect(fault(Self.image, flags: flags) == .metadata)
        }
    }

    @Test("Changing any byte causes no trap and no additional line", arguments: 0..<400)
    func anyByte(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var bytes = Self.image.bytes
        for _ in 0..<Int.random(in: 1...3, using: &dice) {
            let place = Int.random(in: 0..<bytes.count, using: &dice)
            bytes[place] = dice.byte(of: "\r\n: \"\0aW/5".bytes)
        }
        let head = Self.image.moved(bytes: bytes)
        let lines = bytes.lines.dropFirst()
        guard fault(head) == nil else { return }
        #expect(StoredHead.lines(bytes).count == lines.count)
        #expect(lines.allSatisfy { $0.contains(": ") && !$0.contains("\n") })
        let response = ResponseHead(status: 304, fields: ["ETag: W/\"b\""])
        _ = head.updated(with: response, metadata: Self.facts)
    }
}

extension StoredHead {
    /// This head with some of its metadata replaced.
    fileprivate func moved(
        bytes: [UInt8]? = nil, partialStart: Int? = nil, multipartStart: Int? = nil,
        notModifiedStart: Int? = nil, entityTag: Extent? = nil, contentType: Extent? = nil
    ) -> StoredHead {
        StoredHead(
            rendered: bytes ?? self.bytes, partialStart: partialStart ?? self.partialStart,
            multipartStart: multipartStart ?? self.multipartStart,
            notModifiedStart: notModifiedStart ?? self.notModifiedStart,
            contentType: contentType ?? self.contentType, entityTag: entityTag ?? self.entityTag)
    }
}
