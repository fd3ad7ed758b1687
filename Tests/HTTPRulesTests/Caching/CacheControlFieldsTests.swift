import Ground
import HTTPRules
import Testing

private func parse(_ values: String...) -> CacheControl {
    var control = CacheControl()
    for value in values {
        let bytes = value.bytes
        control.add(bytes.span)
    }
    return control
}

private func names(_ fields: FieldNames) -> [String] { fields.names.map(\.text) }

@Suite struct CacheControlFieldsTests {
    /// The field value, the fields that it names, and whether it applies to the whole response.
    private static let listTable: [(String, [String], Bool)] = [
        ("=\"a\"", ["a"], false), ("=\"a, b\"", ["a", "b"], false),
        ("=\"b,a\"", ["a", "b"], false),
        ("=\"Set-Cookie\"", ["set-cookie"], false), ("=\" a ,\tb \"", ["a", "b"], false),
        ("=\",a,,\"", ["a"], false), ("=\"a,A\"", ["a"], false), ("=a", ["a"], false),
        ("=X-Any", ["x-any"], false), ("=\"a\\b\"", ["ab"], false),
        ("=\"\\a, b\"", ["a", "b"], false),
        ("", [], true), ("=", [], true), ("=\"\"", [], true), ("=\" , \"", [], true),
        ("=\"a b\"", [], true), ("=\"a", [], true), ("=a\"", [], true), ("=\"a\"b", [], true),
        ("=\"a:\"", [], true), ("=a b", [], true), (" =\"a\"", [], true), ("= \"a\"", [], true),
        ("=\"a, b;c\"", [], true), (";x", [], true), ("=\"é\"", [], true), ("='a'", ["'a'"], false),
        ("=a;b", [], true), ("=\"a\\\"", [], true),
    ]

    @Test(
        "RFC 9111 §5.2.2.4 and §5.2.2.7: a valid list restricts the directive to its fields",
        arguments: listTable)
    func lists(argument: String, fields: [String], isWhole: Bool) {
        let isPrivate = parse("private" + argument)
        #expect(names(isPrivate.privateFields) == fields)
        #expect(isPrivate.flags == (isWhole ? .isPrivate : []))
        #expect(isPrivate.noCacheFields.isEmpty)
        let noCache = parse("No-Cache" + argument)
        #expect(names(noCache.noCacheFields) == fields)
        #expect(noCache.flags == (isWhole ? .noCache : []))
    }

    @Test("RFC 9110 §5.3: several lists are combined; without a list the whole response is meant")
    func several() {
        let control = parse("private=\"b\", private=\"a\"", "private=c, no-cache=x, no-cache")
        #expect(names(control.privateFields) == ["a", "b", "c"])
        #expect(names(control.noCacheFields) == ["x"])
        #expect(control.flags == .noCache)
        #expect(control.ofWholeResponse.flags == [.isPrivate, .noCache])
        #expect(control.ofWholeResponse.privateFields.isEmpty)
        #expect(parse("private=\"no-store, max-age=5\"").flags == .isPrivate)
        #expect(parse("private=\"a\", max-age=5").maxAge == .seconds(5))
    }

    @Test("A list of more than 64 fields counts as invalid")
    func longList() {
        for (count, flags) in [(64, []), (65, .isPrivate)] as [(Int, CacheControl.Flags)] {
            let list = (0..<count).map { "a\($0)" }.joined(separator: ",")
            let control = parse("private=\"\(list)\"")
            #expect(control.flags == flags)
            #expect(control.privateFields.count == (flags.isEmpty ? count : 0))
        }
    }

    @Test(
        "RFC 9111 §5.2.3: unknown directives have no effect",
        arguments: [
            "community=\"UCI\"", "Foo", "foo=1, bar", "foo=\"a, no-store\"", "foo=\"\"",
            "foo=\"a\\\", no-store\"", "foo=", "foo=a b", "foo=\"a", "=a", "\"foo\"", "foo;a",
            "foo a", "foo=\"a\"b", "post-check=0, pre-check=0",
        ])
    func unknown(value: String) {
        #expect(parse(value) == CacheControl())
    }

    @Test("An unterminated quoted string includes everything after it")
    func unfinished() {
        #expect(parse("foo=\"a, no-store", "public").flags == .isPublic)
    }
}
