import Ground
import HTTPRules
import Testing

/// The metadata of a stored response last modified on Sun, 06 Nov 1994 08:49:37 GMT.
func facts(
    size: UInt64 = 10, lastModified: Int64? = 784_111_777, date: Int64 = 784_112_000,
    flags: EntryFlags = []
) -> EntryMetadata {
    EntryMetadata(
        size: size, generatedAt: .zero, freshUntil: .zero, flags: flags,
        lastModified: lastModified.map { WallTime(seconds: $0) }, date: WallTime(seconds: date),
        entityTag: .empty)
}

@Suite struct PreconditionsTests {
    private static let before = "Sun, 06 Nov 1994 08:49:36 GMT"
    private static let same = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let after = "Sun, 06 Nov 1994 08:49:38 GMT"

    private func result(
        _ fields: [String], tag: String = "\"a\"", _ facts: EntryMetadata = facts()
    ) -> PreconditionResult {
        let head = ResponseHead(status: 200, fields: fields)
        var preconditions = Preconditions(now: WallTime(seconds: 1_795_219_200))
        let tag = tag.bytes
        for line in head.lines {
            preconditions.add(line, in: head.bytes.span, entityTag: tag.span, metadata: facts)
        }
        return preconditions.result
    }

    @Test(
        "RFC 9110 §13.1.2: If-None-Match is false if a tag matches weakly",
        arguments: [
            ("\"a\"", "\"a\"", PreconditionResult.notModified), ("W/\"a\"", "\"a\"", .notModified),
            ("\"a\"", "W/\"a\"", .notModified), ("W/\"a\"", "W/\"a\"", .notModified),
            ("*", "\"a\"", .notModified), ("*", "", .notModified), ("\"b\"", "\"a\"", .proceed),
            ("\"b\", \"a\"", "\"a\"", .notModified), ("\"b\",\"a\"", "\"a\"", .notModified),
            ("\"b\" ,\t W/\"a\"", "\"a\"", .notModified), (",,\"a\",", "\"a\"", .notModified),
            ("\"a\"", "", .proceed), ("a", "\"a\"", .proceed), ("\"a", "\"a\"", .proceed),
            ("'a'", "\"a\"", .proceed), ("w/\"a\"", "\"a\"", .proceed), ("", "\"a\"", .proceed),
            ("\"a\"x", "\"a\"", .proceed), ("x\"a\"", "\"a\"", .proceed),
            ("x, \"a\"", "\"a\"", .notModified), ("\"A\"", "\"a\"", .proceed),
            ("\"b,\", \"a\"", "\"a\"", .notModified), ("\"a,b\"", "\"a,b\"", .notModified),
            ("\"a\",*", "\"b\"", .proceed), ("\"\"", "\"\"", .notModified),
            ("\"a b\"", "\"a b\"", .proceed), ("W/", "\"a\"", .proceed), ("\"", "\"", .proceed),
            ("\"\u{E9}\"", "\"\u{E9}\"", .notModified), ("\"a\" \"b\"", "\"b\"", .proceed),
        ])
    func ifNoneMatch(value: String, tag: String, expected: PreconditionResult) {
        #expect(result(["If-None-Match: \(value)"], tag: tag) == expected)
    }

    @Test(
        "RFC 9110 §13.1.1: If-Match is false unless a tag matches strongly",
        arguments: [
            ("\"a\"", "\"a\"", PreconditionResult.proceed), ("W/\"a\"", "\"a\"", .failed),
            ("\"a\"", "W/\"a\"", .failed), ("W/\"a\"", "W/\"a\"", .failed), ("*", "", .proceed),
            ("\"b\"", "\"a\"", .failed), ("\"b\", \"a\"", "\"a\"", .proceed),
            ("", "\"a\"", .failed),
            ("\"a\"", "", .failed), ("a", "\"a\"", .failed),
        ])
    func ifMatch(value: String, tag: String, expected: PreconditionResult) {
        #expect(result(["If-Match: \(value)"], tag: tag) == expected)
    }

    @Test("RFC 9110 §5.3: several lines of tags are one list")
    func lines() {
        #expect(result(["If-None-Match: \"b\"", "If-None-Match: \"a\""]) == .notModified)
        #expect(result(["If-None-Match: \"a\"", "If-None-Match: \"b\""]) == .notModified)
        #expect(result(["If-Match: \"a\"", "If-Match: \"b\""]) == .proceed)
        #expect(result(["If-Match: \"b\"", "If-Match: \"a\""]) == .proceed)
    }

    @Test(
        "RFC 9110 §13.1.3: If-Modified-Since is false from the modification date on",
        arguments: [
            (before, PreconditionResult.proceed), (same, .notModified), (after, .notModified),
            ("Sunday, 06-Nov-94 08:49:37 GMT", .notModified),
            ("Sun Nov  6 08:49:37 1994", .notModified),
            ("nonsense", .proceed), ("", .proceed), ("0", .proceed),
        ])
    func ifModifiedSince(value: String, expected: PreconditionResult) {
        #expect(result(["If-Modified-Since: \(value)"]) == expected)
    }

    @Test("RFC 9111 §4.3.2: Date is used if there is no Last-Modified")
    func dateStandsIn() {
        let undated = facts(lastModified: nil, date: 784_111_777)
        #expect(result(["If-Modified-Since: \(Self.same)"], undated) == .notModified)
        #expect(result(["If-Modified-Since: \(Self.before)"], undated) == .proceed)
    }

    @Test(
        "RFC 9110 §13.1.4: If-Unmodified-Since is false before the modification date",
        arguments: [
            (before, PreconditionResult.failed), (same, .proceed), (after, .proceed),
            ("nonsense", .proceed),
        ])
    func ifUnmodifiedSince(value: String, expected: PreconditionResult) {
        #expect(result(["If-Unmodified-Since: \(value)"]) == expected)
        #expect(result(["If-Unmodified-Since: \(value)"], facts(lastModified: nil)) == .proceed)
    }

    @Test("RFC 9110 §13.1.3 and §13.1.4: a second line makes a date count as absent")
    func twoDates() {
        let modified = "If-Modified-Since: \(Self.same)"
        #expect(result([modified, modified]) == .proceed)
        let unmodified = "If-Unmodified-Since: \(Self.before)"
        #expect(result([unmodified, unmodified]) == .proceed)
    }

    @Test(
        "RFC 9110 §13.2.2: the order of evaluation",
        arguments: [
            (["If-Match: \"a\"", "If-Unmodified-Since: \(before)"], PreconditionResult.proceed),
            (["If-Match: \"b\"", "If-None-Match: \"a\""], .failed),
            (["If-None-Match: \"a\"", "If-Match: \"b\""], .failed),
            (["If-Match: \"a\"", "If-None-Match: \"a\""], .notModified),
            (["If-Unmodified-Since: \(before)", "If-None-Match: \"a\""], .failed),
            (["If-None-Match: \"b\"", "If-Modified-Since: \(after)"], .proceed),
            (["If-Modified-Since: \(after)", "If-None-Match: \"b\""], .proceed),
            (["If-None-Match: \"a\"", "If-Modified-Since: \(before)"], .notModified),
            (["If-Unmodified-Since: \(after)", "If-Modified-Since: \(after)"], .notModified),
            (["If-Range: \"b\"", "Range: bytes=0-1"], .proceed), ([], .proceed),
        ])
    func order(fields: [String], expected: PreconditionResult) {
        #expect(result(fields) == expected)
    }

    @Test("A request is conditional if it has one of the four fields")
    func fields() {
        let set = Preconditions.fields
        let names = FieldName.allCases.filter { set.contains($0) }
        #expect(names == [.ifMatch, .ifModifiedSince, .ifNoneMatch, .ifUnmodifiedSince])
    }

    private static let ifRangeTable: [(String, String, EntryFlags, Bool)] = [
        ("\"a\"", "\"a\"", EntryFlags([]), true), ("\"b\"", "\"a\"", [], false),
        ("W/\"a\"", "\"a\"", [], false), ("\"a\"", "W/\"a\"", [], false),
        ("W/\"a\"", "W/\"a\"", [], false), ("\"a\"", "", [], false),
        ("\"a\", \"b\"", "\"a\"", [], false), ("*", "\"a\"", [], false),
        (same, "", .strongDate, true), (same, "\"a\"", .strongDate, true),
        (same, "", [], false),
        (before, "", .strongDate, false), (after, "", .strongDate, false),
        ("nonsense", "", .strongDate, false), ("", "", .strongDate, false),
    ]

    @Test(
        "RFC 9110 §13.1.5: If-Range requires a strong validator",
        arguments: ifRangeTable)
    func ifRange(value: String, tag: String, flags: EntryFlags, expected: Bool) {
        let bytes = ("x" + value + "x").utf8.map { $0 }
        let tag = tag.bytes
        let holds = Preconditions.ifRangeHolds(
            bytes.span, at: 1..<bytes.count - 1, entityTag: tag.span, metadata: facts(flags: flags),
            now: WallTime(seconds: 1_795_219_200))
        #expect(holds == expected)
    }

    @Test("RFC 9110 §13.1.5: a date is never true without a stored Last-Modified")
    func ifRangeUndated() {
        let bytes = Self.same.bytes
        let none: [UInt8] = []
        let holds = Preconditions.ifRangeHolds(
            bytes.span, at: 0..<bytes.count, entityTag: none.span,
            metadata: facts(lastModified: nil, flags: .strongDate), now: WallTime(seconds: 0))
        #expect(!holds)
    }
}
