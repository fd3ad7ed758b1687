import HTTPRules
import Testing

@Suite struct StructuredItemTests {
    /// What is written, and what is read from it; nil for a value that counts for nothing.
    private static let itemTable: [(String, StructuredBareItem?)] = [
        // RFC 9651 §3.3.1, §4.2.4: integers
        ("0", .integer(0)), ("42", .integer(42)), ("-42", .integer(-42)), ("-0", .integer(0)),
        ("007", .integer(7)), ("999999999999999", .integer(999_999_999_999_999)),
        ("-999999999999999", .integer(-999_999_999_999_999)), ("1000000000000000", nil),
        ("99999999999999999999999999", nil), ("-", nil), ("--1", nil), ("+1", nil), ("1,", nil),
        ("1 1", nil), ("1e3", nil), ("- 1", nil), ("0x10", nil),
        // RFC 9651 §3.3.2: decimals
        ("1.5", .decimal(thousandths: 1500)), ("-1.5", .decimal(thousandths: -1500)),
        ("0.001", .decimal(thousandths: 1)), ("1.10", .decimal(thousandths: 1100)),
        ("00.5", .decimal(thousandths: 500)),
        ("999999999999.999", .decimal(thousandths: 999_999_999_999_999)),
        ("1000000000000.0", nil), ("1.2345", nil), ("1.", nil), (".5", nil), ("1.5.5", nil),
        ("-.5", nil),
        // RFC 9651 §3.3.3: strings
        ("\"\"", .string([])), ("\"a b\"", .string("a b".bytes)),
        ("\"a\\\"b\\\\\"", .string("a\"b\\".bytes)), ("\"a,;=b\"", .string("a,;=b".bytes)),
        ("\"a", nil), ("\"a\\\"", nil), ("\"a\\b\"", nil), ("\"a\tb\"", nil), ("\"\u{7F}\"", nil),
        ("\"é\"", nil), ("'a'", nil), ("\"a\"b", nil),
        // RFC 9651 §3.3.4: tokens
        ("a", .token("a".bytes)), ("*", .token("*".bytes)), ("A/b:c*", .token("A/b:c*".bytes)),
        ("a_b-c.d!#$%&'+^`|~9", .token("a_b-c.d!#$%&'+^`|~9".bytes)), ("a b", nil), ("a,b", nil),
        ("a\"", nil), ("_a", nil), ("/a", nil), ("é", nil),
        // RFC 9651 §3.3.5: bytes
        ("::", .bytes([])), (":aGk=:", .bytes("hi".bytes)), (":aGk:", .bytes("hi".bytes)),
        (":AP8Q:", .bytes([0, 255, 16])), (":+/==:", .bytes([0xFB])),
        (":aGl=:", .bytes("hi".bytes)),
        (":a:", nil), (":aGk==:", nil), (":=aGk:", nil), (":aG k=:", nil), (":aGk=", nil),
        (":-_==:", nil), (":aGk=:b", nil),
        // RFC 9651 §3.3.6: booleans
        ("?1", .boolean(true)), ("?0", .boolean(false)), ("?", nil), ("?2", nil), ("? 1", nil),
        ("?T", nil), ("?01", nil), ("true", .token("true".bytes)),
        // RFC 9651 §3.3.7: dates
        ("@0", .date(0)), ("@1659578233", .date(1_659_578_233)),
        ("@-62135596800", .date(-62_135_596_800)),
        ("@", nil), ("@1.0", nil), ("@ 1", nil), ("@1000000000000000", nil),
        // RFC 9651 §3.3.8: display strings
        ("%\"\"", .displayString("")), ("%\"a b\"", .displayString("a b")),
        ("%\"f%c3%bc%22\"", .displayString("fü\"")), ("%\"f%C3%BC\"", nil), ("%\"%\"", nil),
        ("%\"%e\"", nil), ("%\"%ff\"", nil), ("%\"%c3\"", nil), ("%\"ü\"", nil), ("%\"a", nil),
        ("%a", nil), ("%", nil),
        // RFC 9651 §4.2: spaces around a value mean nothing, anything else does
        ("  1  ", .integer(1)), ("\t1", nil), ("1\t", nil), ("", nil), (" ", nil), ("1;", nil),
        ("(1)", nil), (";a", nil),
    ]

    @Test("RFC 9651 §3.3 and §4.2.3: every kind of item, and what is none", arguments: itemTable)
    func items(text: String, expected: StructuredBareItem?) {
        let bytes = text.bytes
        let found = StructuredItem(bytes.span)
        #expect(found?.bareItem == expected)
        #expect(found?.parameters.isEmpty ?? true)
    }

    @Test(
        "RFC 9651 §4.1: what is written has one form",
        arguments: [
            ("007", "7"), ("-0", "0"), ("1.10", "1.1"), ("2.0", "2.0"), ("-0.0", "0.0"),
            ("-0.05", "-0.05"), (":aGk:", ":aGk=:"), (":aGl=:", ":aGk=:"), ("?0", "?0"),
            ("%\"%41%0a%25\"", "%\"A%0a%25\""), ("\"\\\"\"", "\"\\\"\""), (" a;b=?1;c ", "a;b;c"),
            ("1; a=1;  b=2;a=3", "1;a=3;b=2"), ("@05", "@5"),
        ])
    func canonical(text: String, expected: String) throws {
        let bytes = text.bytes
        let found = StructuredItem(bytes.span)
        let item = try #require(found)
        var written: [UInt8] = []
        item.append(to: &written)
        #expect(written.text == expected)
    }

    @Test("RFC 9651 §3.1.2: of a parameter that comes twice the last value counts")
    func parameters() throws {
        let bytes = "a;b;*c=1;b=?0;d_e.f-9=\"x\"".bytes
        let found = StructuredItem(bytes.span)
        let item = try #require(found)
        #expect(item.parameters["b"] == .boolean(false))
        #expect(item.parameters["*c"] == .integer(1))
        #expect(item.parameters["d_e.f-9"] == .string("x".bytes))
        #expect(item.parameters["x"] == nil)
        #expect(item.parameters.pairs.map(\.key) == ["b".bytes, "*c".bytes, "d_e.f-9".bytes])
    }

    @Test(
        "RFC 9651 §4.2.3.2 and §4.2.3.3: parameters that follow no grammar",
        arguments: [
            "a;", "a;B", "a;b=", "a;b= 1", "a;b =1", "a ;b", "a;1", "a;-b", "a;b=()", "a;b;;c",
            "a;b=\"", "a;é",
        ])
    func broken(text: String) {
        let bytes = text.bytes
        let found = StructuredItem(bytes.span)
        #expect(found == nil)
    }

    @Test("RFC 9651 §3.1.2: 256 parameters are read, and no more")
    func limit() {
        for (count, isRead) in [(256, true), (257, false)] {
            let bytes = ("a" + (0..<count).map { ";p\($0)" }.joined()).bytes
            let found = StructuredItem(bytes.span)
            #expect((found != nil) == isRead)
        }
    }
}
