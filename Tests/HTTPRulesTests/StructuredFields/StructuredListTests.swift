import Ground
import HTTPRules
import Testing
import Trials

private func list(_ text: String) -> StructuredList? {
    let bytes = text.bytes
    return StructuredList(bytes.span)
}

private func dictionary(_ text: String) -> StructuredDictionary? {
    let bytes = text.bytes
    return StructuredDictionary(bytes.span)
}

private func written(_ list: StructuredList?) -> String? {
    guard let list else { return nil }
    var bytes: [UInt8] = []
    list.append(to: &bytes)
    return bytes.text
}

private func written(_ dictionary: StructuredDictionary?) -> String? {
    guard let dictionary else { return nil }
    var bytes: [UInt8] = []
    dictionary.append(to: &bytes)
    return bytes.text
}

@Suite struct StructuredListTests {
    /// What comes, and what is written of what was read; nil for a value that counts for nothing.
    private static let listTable: [(String, String?)] = [
        ("", ""), ("   ", ""), ("1", "1"), ("1,2", "1, 2"), ("1 \t,\t 2", "1, 2"),
        (" 1, 2 ", "1, 2"), ("a;b , c", "a;b, c"), ("()", "()"), ("( )", "()"),
        ("(1 2)", "(1 2)"), ("( 1  2 )", "(1 2)"), ("(1);a=1, 2", "(1);a=1, 2"),
        ("(1;x 2;y);z", "(1;x 2;y);z"), ("(\"a)\" b)", "(\"a)\" b)"),
        ("\"a, b\", c", "\"a, b\", c"),
        (",", nil), ("1,", nil), (",1", nil), ("1,,2", nil), ("1, ", nil), ("1 2", nil),
        ("\t1", nil), ("1\t", nil), ("(1", nil), ("(1,2)", nil), ("(1\t2)", nil), ("(1)2", nil),
        ("((1))", nil), ("(1 ", nil), (")", nil), ("(1;)", nil), ("(\"a\"\"b\")", nil),
        ("1;a ,2", "1;a, 2"), ("é", nil), ("1, é", nil), ("1, &", nil),
    ]

    @Test("RFC 9651 §3.1 and §4.2.1: lists and inner lists", arguments: listTable)
    func lists(text: String, expected: String?) {
        #expect(written(list(text)) == expected)
    }

    private static let dictionaryTable: [(String, String?)] = [
        ("", ""), (" ", ""), ("a", "a"), ("a=1", "a=1"), ("a=?1", "a"), ("a=?0", "a=?0"),
        ("a,b", "a, b"), ("a=1 ,\tb=2", "a=1, b=2"), ("a=1, b=2, a=3", "a=3, b=2"),
        ("a;x;y=2", "a;x;y=2"), ("a=?1;x", "a;x"), ("a=(1 2);x, b", "a=(1 2);x, b"),
        ("max-age=60, private=\"a, b\"", "max-age=60, private=\"a, b\""), ("*=1", "*=1"),
        ("a_-.*9=1", "a_-.*9=1"), ("a=1;b, a", "a"),
        ("A=1", nil), ("a =1", nil), ("a= 1", nil), ("a=", nil), ("=1", nil), ("a=1,", nil),
        ("a=1;", nil), ("a=1 b=2", nil), ("1", nil), ("a, 1", nil), ("-a", nil), ("a=1, &&", nil),
        ("a==1", nil), ("\"a\"=1", nil), ("a,,b", nil), ("a=(1", nil), ("a\t", nil), ("é", nil),
    ]

    @Test("RFC 9651 §3.2 and §4.2.2: dictionaries", arguments: dictionaryTable)
    func dictionaries(text: String, expected: String?) {
        #expect(written(dictionary(text)) == expected)
    }

    @Test("What stands behind a key is found by it")
    func look() throws {
        let found = try #require(dictionary("a=1;x=2, b=(c d), e"))
        #expect(found["a"]?.bareItem == .integer(1))
        #expect(found["a"]?.parameters["x"] == .integer(2))
        #expect(found["b"]?.bareItem == nil)
        #expect(found["e"]?.bareItem == .boolean(true))
        #expect(found["d"] == nil)
    }

    @Test("RFC 9651 §3.1 and §3.2: 1,024 members are read, and no more")
    func limits() {
        for (count, isRead) in [(1024, true), (1025, false)] {
            let keys = (0..<count).map { "k\($0)" }.joined(separator: ",")
            #expect((list(keys) != nil) == isRead)
            #expect((dictionary(keys) != nil) == isRead)
        }
    }

    @Test("RFC 9651 §4: what was written is read as what it was")
    func roundTrip() {
        var dice = SplitMix64.structured
        for _ in 0..<Trials.count(3000) {
            let members = (0..<Int.random(in: 0...4, using: &dice)).map { _ in dice.member() }
            let made = StructuredList(members)
            var text: [UInt8] = []
            made.append(to: &text)
            let read = StructuredList(text.span)
            #expect(read == made, "\(text.text)")

            var entries = StructuredDictionary()
            for member in members { entries.set(dice.key(), to: member) }
            text = []
            entries.append(to: &text)
            let again = StructuredDictionary(text.span)
            #expect(again == entries, "\(text.text)")
        }
    }

    @Test("No bytes make the reader fail, and what it reads it can write and read again")
    func anyBytes() {
        var dice = SplitMix64.structured
        for _ in 0..<Trials.count(20_000) {
            let text = dice.text(of: "ab*1-.9;=, \t()\"\\:?@%0f/é~", upTo: 24)
            guard let found = list(text) else { continue }
            let again = written(found) ?? ""
            #expect(list(again) == found, "\(text)")
        }
    }
}
