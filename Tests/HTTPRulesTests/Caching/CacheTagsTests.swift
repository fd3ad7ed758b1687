import HTTPRules
import Testing

@Suite struct CacheTagsTests {
    private static let table: [([String], [String])] = [
        ([], []),
        (["Surrogate-Key: a b\tc"], ["a", "b", "c"]),
        (["Surrogate-Key: a,b c"], ["a,b", "c"]),
        (["Cache-Tag: a b, c,d ,"], ["a b", "c", "d"]),
        (["xkey: a, b c,d"], ["a", "b", "c", "d"]),
        (["XKEY: a", "surrogate-key: b", "CACHE-TAG: c"], ["a", "b", "c"]),
        (["xkey: a b", "xkey: c", "Cache-Tag: b,A"], ["a", "b", "c", "A"]),
        (["xkey: ,, ,", "Surrogate-Key:"], []),
        (["Surrogate-Keys: a", "X-Cache-Tag: b"], []),
        (["Cache-Tag: \"a,b\""], ["\"a", "b\""]),
    ]

    @Test("Tags are separated by white space or commas, and each counts once", arguments: table)
    func usual(fields: [String], expected: [String]) {
        let tags = CacheTags(ResponseHead(status: 200, fields: fields))
        #expect(tags.tags.map(\.text) == expected && tags.droppedCount == 0)
    }

    @Test("The names of the tag fields are configurable")
    func configured() throws {
        let fields = [try #require(TagField("X-Tags")), try #require(TagField("Cache-Tag"))]
        let head = ResponseHead(200, "x-tags: a, b c", "xkey: d", "Cache-Tag: e f")
        #expect(CacheTags(head, fields: fields).tags.map(\.text) == ["a", "b", "c", "e f"])
        #expect(CacheTags(head, fields: []).tags.isEmpty)
        #expect(TagField("") == nil && TagField("a b") == nil && TagField("x:") == nil)
        #expect(
            TagField.defaults == ["Surrogate-Key", "Cache-Tag", "XKey"].compactMap { TagField($0) })
    }

    @Test("Tags beyond a limit are dropped and counted")
    func bounded() {
        let many = (0..<1002).map { "\($0)" }.joined(separator: " ")
        let first = CacheTags(ResponseHead(200, "xkey: \(many) 0 1"))
        #expect(first.tags.count == 1000 && first.droppedCount == 2)
        let long = String(repeating: "x", count: 1024)
        let second = CacheTags(ResponseHead(200, "xkey: \(long), \(long)y, z"))
        #expect(second.tags.map(\.count) == [1024, 1] && second.droppedCount == 1)
        let large = (10..<30).map { long.dropLast(2) + "\($0)" }.joined(separator: ",")
        let third = CacheTags(ResponseHead(200, "xkey: \(large)"))
        #expect(third.tags.count == 16 && third.droppedCount == 4)
    }
}
