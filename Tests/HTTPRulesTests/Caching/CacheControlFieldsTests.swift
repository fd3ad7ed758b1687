import Ground
import HTTPRules
import Testing
import Trials

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
        "RFC 9111 §5.2.3: unknown directives are kept separately and have no effect",
        arguments: [
            ("community=\"UCI\"", ["community=UCI"]), ("Foo", ["foo"]),
            ("foo=1, bar", ["foo=1", "bar"]),
            ("foo=\"a, no-store\"", ["foo=a, no-store"]), ("foo=\"\"", ["foo="]),
            ("foo=\"a\\\"b\"", ["foo=a\"b"]), ("foo=", []), ("foo=a b", []), ("foo=\"a", []),
            ("=a", []), ("\"foo\"", []), ("foo;a", []), ("foo a", []), ("foo=\"a\"b", []),
            ("post-check=0, pre-check=0", ["post-check=0", "pre-check=0"]),
        ])
    func unknown(value: String, expected: [String]) {
        let control = parse(value)
        let found = control.unknown.map { directive in
            directive.name.text + (directive.argument.map { "=" + $0.text } ?? "")
        }
        #expect(found == expected)
        #expect(control.flags.isEmpty && control.maxAge == nil)
    }

    @Test(
        "Directives are written in a fixed order",
        arguments: [
            ("", ""), ("MAX-AGE=\"060\" ,Public", "public, max-age=60"),
            ("private=a, no-store, foo=\"b c\"", "no-store, private=\"a\", foo=\"b c\""),
            ("max-stale", "max-stale=2147483648"), ("max-age=x", "max-age=0"),
            ("foo=b, stale-if-error=1", "stale-if-error=1, foo=b"),
        ])
    func written(value: String, expected: String) {
        var text: [UInt8] = []
        parse(value).append(to: &text)
        #expect(text.text == expected)
    }

    @Test("RFC 9111 §5.2: what was written is read as the same directives")
    func roundTrip() {
        var dice = SplitMix64(seed: 9111)
        let words = [
            "max-age", "s-maxage", "no-store", "no-cache", "private", "public", "must-revalidate",
            "proxy-revalidate", "must-understand", "immutable", "no-transform", "only-if-cached",
            "max-stale", "min-fresh", "stale-while-revalidate", "stale-if-error", "foo", "Bar",
        ]
        let arguments = [
            "", "=5", "=\"7\"", "=x", "=\"a, B\"", "=\"", "=\"a\\\"b\"", "=99999999999", "=-1",
            "=\"\"",
            "= 3", "=a b",
        ]
        for _ in 0..<Trials.count(5000) {
            let parts = (0..<Int.random(in: 0...6, using: &dice)).map { _ in
                words[Int.random(in: 0..<words.count, using: &dice)]
                    + arguments[Int.random(in: 0..<arguments.count, using: &dice)]
            }
            let value = parts.joined(separator: ",")
            let control = parse(value)
            var text: [UInt8] = []
            control.append(to: &text)
            #expect(parse(text.text) == control, "\(value) → \(text.text)")
        }
    }
}
