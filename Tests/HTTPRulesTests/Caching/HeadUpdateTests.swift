import Ground
import HTTPRules
import Testing

@Suite("RFC 9111 §3.2: updating a stored head")
struct HeadUpdateTests {
    private func facts(
        _ head: StoredHead, flags: EntryFlags = [], lifetime: Int64 = 60, size: UInt64 = 1
    ) -> EntryMetadata {
        EntryMetadata(
            size: size, generatedAt: .zero, freshUntil: .zero + .seconds(lifetime), flags: flags,
            lastModified: nil, date: WallTime(seconds: 0), entityTag: head.entityTag)
    }

    private static let table: [([String], [String], [String])] = [
        (["A: 1", "B: 2"], [], ["A: 1", "B: 2"]),
        (["A: 1", "B: 2"], ["a: 3"], ["B: 2", "a: 3"]),
        (["A: 1", "a: 2", "B: 3"], ["A: 4", "A: 5"], ["B: 3", "A: 4", "A: 5"]),
        (["Cache-Control: x"], ["Cache-Control: y", "New: 1"], ["Cache-Control: y", "New: 1"]),
        (["ETag: \"a\""], ["ETag: W/\"a\""], ["ETag: W/\"a\""]),
        (["Set-Cookie: a=b"], ["Set-Cookie: a=c"], ["Set-Cookie: a=c"]),
        (["Content-Foo: 1"], ["Content-Foo: 2"], ["Content-Foo: 2"]),
        (["Content-Location: /a"], ["Content-Location: /b"], ["Content-Location: /b"]),
        (["Content-MD5: 1"], ["Content-MD5: 2"], ["Content-MD5: 2"]),
        (["Content-Language: a"], ["Content-Language: b"], ["Content-Language: b"]),
        (
            ["Content-Security-Policy: 1"], ["Content-Security-Policy: 2"],
            ["Content-Security-Policy: 2"]
        ),
        // Fields that describe the stored content stay.
        (["Content-Type: a/b"], ["Content-Type: c/d"], ["Content-Type: a/b"]),
        (["Content-Encoding: br"], ["Content-Encoding: gzip"], ["Content-Encoding: br"]),
        ([], ["Content-Encoding: gzip", "Content-Range: bytes 0-0/1"], []),
        (["Content-Range: bytes */1"], ["Content-Range: bytes */2"], ["Content-Range: bytes */1"]),
        (["Content-Digest: a"], ["content-digest: b"], ["Content-Digest: a"]),
        (["A: 1"], ["Content-Length: 0"], ["A: 1"]),
        // Times are taken from the update.
        (["Date: x"], [], []), (["Date: x"], ["Date: y"], ["Date: y"]),
        (["A: 1"], ["Age: 7"], ["A: 1", "Age: 7"]),
        // Connection-specific fields apply to the update's hop only.
        (["A: 1", "B: 2"], ["Connection: a", "A: 3"], ["A: 1", "B: 2"]),
        (["A: 1"], ["Transfer-Encoding: chunked", "Keep-Alive: 5", "Upgrade: x"], ["A: 1"]),
        (
            ["A: 1"], ["Connection: close, cache-control", "Cache-Control: x"],
            ["A: 1", "Cache-Control: x"]
        ),
    ]

    @Test(
        "With few exceptions every field of a 304 replaces the stored one",
        arguments: table)
    func fields(stored: [String], update: [String], expected: [String]) {
        let head = StoredHead(site: stored, size: 9)
        let updated = head.updated(
            with: ResponseHead(status: 304, fields: update), metadata: facts(head))
        #expect(updated.status == 200 && updated.fields == expected)
        for line in updated.lines {
            let id = FieldName(updated.bytes.span, at: line.name.range)
            #expect(line.id == id)
        }
    }

    @Test("The updated head keeps its status and reason phrase, and is rendered as before")
    func rendered() {
        let head = StoredHead(
            ResponseHead(404, "A: 1", "ETag: \"x\"", "Date: d"), size: 3, rules: .none,
            unstored: FieldNames())
        let updated = head.updated(
            with: ResponseHead(304, "Date: d"), metadata: facts(head))
        #expect(updated.status == 404)
        let again = StoredHead(updated, size: 3, rules: .none, unstored: FieldNames())
        #expect(again.bytes.text.hasPrefix("HTTP/1.1 404 Any\r\nContent-Length: 3\r\n"))
        #expect(again.fields.sorted() == head.fields.sorted())
        #expect(again.bytes.text(again.entityTag) == "\"x\"")
    }

    @Test("Repeated updates do not duplicate the lines of rules")
    func stable() {
        let rules = ResponseFieldRules(
            removed: ["server"], lines: ["X-A: 1", "Content-Language: de"], tags: ["xkey"],
            control: "max-age=5")
        let origin = ["Cache-Control: max-age=60", "X-A: 0", "Server: s", "xkey: k", "Date: d"]
        var head = StoredHead(site: origin, size: 1, rules: rules)
        let flags = rules.flags(for: ResponseHead(status: 200, fields: origin))
        for _ in 0..<3 {
            let updated = head.updated(
                with: ResponseHead(304, "Date: d", "Server: t"), metadata: facts(head, flags: flags)
            )
            let next = StoredHead(updated, size: 1, rules: rules, unstored: FieldNames())
            #expect(next.fields.sorted() == head.fields.sorted())
            #expect(rules.flags(for: updated) == flags)
            head = next
        }
    }

    private static let every: EntryFlags = [
        .noCache, .mustRevalidate, .immutable, .allowsAuthorization,
    ]
    private static let controls: [(EntryFlags, [String], [String], [String])] = [
        // Nothing is hidden: the stored lines suffice.
        (
            [], ["Cache-Control: max-age=5", "Expires: x"], [],
            ["Cache-Control: max-age=5", "Expires: x"]
        ),
        // Clients receive other directives: the metadata has the original ones.
        (.overridesControl, ["Cache-Control: max-age=5"], [], ["Cache-Control: max-age=60"]),
        (
            .overridesControl, ["A: 1", "Expires: x"], ["A: 2"],
            ["A: 2", "Cache-Control: max-age=60"]
        ),
        (.overridesControl, ["Cache-Control: a"], ["Cache-Control: b"], ["Cache-Control: b"]),
        (.overridesControl, ["Cache-Control: a"], ["Expires: b"], ["Expires: b"]),
        (
            .overridesControl, ["Cache-Control: a"], ["CDN-Cache-Control: b"],
            ["CDN-Cache-Control: b"]
        ),
        (
            .overridesControl, ["Cache-Control: a"], ["Nuthatch-Cache-Control: b"],
            ["Nuthatch-Cache-Control: b"]
        ),
        // Our own field comes before all others, and stays until the origin sends it again.
        (
            .nuthatchControl, ["Cache-Control: a"], ["Cache-Control: b"],
            ["Cache-Control: b", "Nuthatch-Cache-Control: max-age=60"]
        ),
        (
            .nuthatchControl, ["Cache-Control: a"], ["nuthatch-cache-control: max-age=7"],
            ["Cache-Control: a", "nuthatch-cache-control: max-age=7"]
        ),
        (
            [.nuthatchControl, .overridesControl], ["Cache-Control: a"], [],
            ["Nuthatch-Cache-Control: max-age=60"]
        ),
        (
            every.union(.overridesControl), [], [],
            [
                "Cache-Control: max-age=60, no-cache, must-revalidate, immutable, public"
                    + ", stale-while-revalidate=3, stale-if-error=4"
            ]
        ),
    ]

    @Test(
        "RFC 9213 §2.1: freshness hidden from the stored lines survives an update",
        arguments: controls)
    func hidden(flags: EntryFlags, stored: [String], update: [String], expected: [String]) {
        let head = StoredHead(site: stored, size: 1)
        var facts = facts(head, flags: flags)
        if flags.contains(.immutable) {
            facts.staleWhileRevalidateSeconds = 3
            facts.staleIfErrorSeconds = 4
        }
        let updated = head.updated(
            with: ResponseHead(status: 304, fields: update), metadata: facts)
        #expect(updated.fields == expected)
    }
}
