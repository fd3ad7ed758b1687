import Ground
import HTTPRules
import Testing
import Trials

/// The variant that `fields`, each `name: value`, select by `names`; `nil` if they cannot.
private func variant(_ names: FieldNames, _ fields: [String], generation: UInt64 = 0xAB) -> String?
{
    let head = ResponseHead(status: 200, fields: fields)
    let base = "//h/p?q".bytes
    var key = "before".bytes
    let isMade = VariantKey.append(
        base: base.span, generation: generation, names: names, lines: head.lines,
        in: head.bytes.span, to: &key)
    #expect(key.text.hasPrefix("before") && (isMade || key.count == 6))
    return isMade ? String(key.text.dropFirst(6)) : nil
}

@Suite struct VariantKeyTests {
    private let start = "//h/p?q\n00000000000000ab\n"

    @Test("A variant's key has the URL's key, the generation, and each nominated field in order")
    func form() {
        #expect(variant(FieldNames(), ["Accept: a/b"]) == start)
        #expect(
            variant(fieldNames("foo", "Bar"), ["FOO: 1", "Baz: 2", "bar:"])
                == start + "bar:\nfoo:1\n")
        let other = variant(FieldNames(), [], generation: .max - 1)
        #expect(other == "//h/p?q\nfffffffffffffffe\n")
    }

    @Test("A variant's key can be split, and joined with another generation")
    func parts() throws {
        let whole = try #require(
            variant(fieldNames("foo", "Bar", "cookie"), ["Foo: a:b", "bar: x"]))
        let parts = try #require(VariantKey.Parts(whole.bytes))
        #expect(parts.base.text == "//h/p?q" && parts.generation == 0xAB)
        #expect(parts.names == fieldNames("foo", "bar", "cookie"))
        #expect(parts.key(in: 0xAB).text == whole)
        #expect(
            parts.key(in: 1).text == "//h/p?q\n0000000000000001\nbar:x\ncookie\nfoo:a:b\n")
        let plain = try #require(VariantKey.Parts(start.bytes))
        #expect(plain.names.isEmpty && plain.key(in: 0xAB).text == start)
        for none in ["//h/p", "//h/p\n", start + "x", "//h/p\nab\n", start + "a b\n", start + "\n"]
        {
            #expect(VariantKey.Parts(none.bytes) == nil, "\(none)")
        }
    }

    @Test("RFC 9111 §4.1: a missing field matches only a missing one")
    func missing() {
        for name in ["foo", "accept", "cookie", "accept-language", "authorization"] {
            let names = fieldNames(name)
            #expect(variant(names, []) == start + "\(name)\n")
            #expect(variant(names, ["\(name):"]) == start + "\(name):\n")
        }
    }

    private static let same: [(String, [String], [String], String)] = [
        ("foo", ["1, 2"], ["1", "2"], "1,2"),
        ("foo", ["1,2"], ["1 \t,\t 2"], "1,2"),
        ("foo", ["", "a"], [", a"], ",a"),
        ("foo", ["\"a, b\" , c"], ["\"a, b\"", "c"], "\"a, b\",c"),
        ("accept-encoding", ["GZIP , br;Q=0.5"], ["gzip", ",br ; q=0.5,"], "gzip,br;q=0.5"),
        ("accept-language", ["en-GB, de"], ["EN-gb,,DE"], "en-gb,de"),
        ("accept-language", [" , "], [""], ""),
        ("accept-charset", ["UTF-8"], ["utf-8 "], "utf-8"),
        (
            "accept", ["Text/HTML;Level=X ; Q=1"], ["text/html; level=X;q=1"],
            "text/html;level=X;q=1"
        ),
        (
            "accept", ["a/b;c=\"D ; E,\" , f/g"], ["A/B;C=\"D ; E,\"", "F/G"],
            "a/b;c=\"D ; E,\",f/g"
        ),
        ("cookie", ["a=1; b=2"], ["a=1", "b=2"], "a=1; b=2"),
        ("authorization", ["Basic  x,"], ["Basic  x,"], "Basic  x,"),
        ("user-agent", ["a (b,  c)"], ["a (b,  c)"], "a (b,  c)"),
    ]

    @Test("RFC 9111 §4.1: requests with equivalent fields match", arguments: same)
    func normalised(name: String, left: [String], right: [String], value: String) {
        let names = fieldNames(name)
        let expected = start + "\(name):\(value)\n"
        #expect(variant(names, left.map { "\(name): \($0)" }) == expected)
        #expect(variant(names, right.map { "\(name): \($0)" }) == expected)
    }

    private static let different: [(String, String, String)] = [
        ("foo", "a", "A"), ("foo", "a,b", "b,a"), ("foo", "a,,b", "a,b"), ("foo", "a b", "ab"),
        ("foo", "\"a, b\"", "\"a,b\""), ("foo", "a;b", "a; b"),
        ("accept", "a/b;c=D", "a/b;c=d"), ("accept", "a/b;c=\"D\"", "a/b;c=\"d\""),
        ("accept-language", "en, de", "de, en"), ("accept-encoding", "gzip", "gzip;q=0"),
        ("accept-encoding", "", "identity"), ("cookie", "a=1,b", "a=1, b"),
        ("cookie", "a=1; b=2", "b=2; a=1"), ("cookie", "a=1", "A=1"),
        ("authorization", "Basic a", "Basic A"), ("user-agent", "a, b", "a,b"),
    ]

    @Test(
        "RFC 9111 §4.1: requests whose fields may differ in meaning do not match",
        arguments: different)
    func distinct(name: String, left: String, right: String) {
        let names = fieldNames(name)
        let first = variant(names, ["\(name): \(left)"])
        #expect(first != nil && first != variant(names, ["\(name): \(right)"]))
    }

    @Test("All values together have at most 4,096 bytes, colons included")
    func bounded() {
        let half = String(repeating: "x", count: 2047)
        let names = fieldNames("a", "b")
        #expect(variant(names, ["a: \(half)", "b: \(half)"]) != nil)
        #expect(variant(names, ["a: \(half)x", "b: \(half)"]) == nil)
        #expect(variant(names, ["a: \(half)", "a: \(half)", "b:"]) == nil)
        #expect(variant(fieldNames("b"), ["a: \(half)\(half)\(half)"]) != nil)
        let blanks = String(repeating: " ", count: 5000)
        #expect(variant(names, ["a: 1,\(blanks)2"]) == start + "a:1,2\nb\n")
    }

    @Test("A value with a line feed gives no variant")
    func lineFeed() {
        #expect(variant(fieldNames("a"), ["a: 1\nb:2"]) == nil)
        #expect(variant(fieldNames("b"), ["a: 1\nb:2"]) == start + "b\n")
    }
}

@Suite struct VariantKeyPropertyTests {
    /// The meaning of a request's fields of one name; `nil` if there are none.
    private func meaning(_ name: String, _ values: [String]) -> [String]? {
        if values.isEmpty { return nil }
        guard name != "cookie" else { return [values.joined(separator: "; ")] }
        let members = values.joined(separator: ",")
            .split(separator: ",", omittingEmptySubsequences: false)
            .map { String($0.trimming()) }
        return name == "accept-language"
            ? members.filter { !$0.isEmpty }.map { $0.lowercased() } : members
    }

    @Test("Two requests have one key exactly if all nominated fields have equal meanings")
    func injective() {
        var dice = SplitMix64(seed: 31)
        let all = ["accept-language", "cookie", "foo", "fo", "foo-bar"]
        var keys: [String: [String: [String]]] = [:]
        var met = 0
        for _ in 0..<Trials.count(40_000) {
            let nominated = Array(all.shuffled(using: &dice).prefix(2))
            var meant: [String: [String]] = [:]
            var fields: [String] = []
            for name in nominated {
                let values = (0..<Int.random(in: 0...2, using: &dice)).map { _ in
                    dice.text(of: "aA,: b", upTo: 3).trimming()
                }
                fields += values.map { "\(name): \($0)" }
                meant[name] = meaning(name, values).map { ["there"] + $0 } ?? ["missing"]
            }
            let names = fieldNames(nominated[0], nominated[1])
            guard let key = variant(names, fields.shuffledLines(using: &dice)) else {
                Issue.record("no key of \(fields)")
                continue
            }
            #expect(keys[key, default: meant] == meant, "\(fields)")
            if keys[key] != nil { met += 1 }
            keys[key] = meant
        }
        #expect(Set(keys.values).count == keys.count)
        #expect(met > Trials.count(10_000) && keys.count > Trials.count(5000))
    }

    @Test("Another key, generation or set of names gives another variant")
    func apart() {
        var seen: Set<[UInt8]> = []
        var count = 0
        let bytes = "a: 1".bytes
        let line = FieldLine(
            id: .other, name: Extent(start: 0, count: 1), value: Extent(start: 3, count: 1))
        for base in ["//h/", "//h/a", "//h/a:1", ""] {
            for generation in [0, 1, 10, UInt64.max] {
                for names in [FieldNames(), fieldNames("a"), fieldNames("a", "b"), fieldNames("b")]
                {
                    var key: [UInt8] = []
                    let base = base.bytes
                    let isMade = VariantKey.append(
                        base: base.span, generation: generation, names: names, lines: [line],
                        in: bytes.span, to: &key)
                    #expect(isMade)
                    seen.insert(key)
                    count += 1
                }
            }
        }
        #expect(seen.count == count)
    }
}

extension StringProtocol {
    fileprivate func trimming() -> String {
        let white: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(String(drop(while: white).reversed()).drop(while: white).reversed())
    }
}

extension [String] {
    /// The lines of several fields in random order, with those of one field in their order.
    fileprivate func shuffledLines(using dice: inout SplitMix64) -> [String] {
        let names = map { String($0.prefix { $0 != ":" }) }
        var left = Dictionary(grouping: self) { String($0.prefix { $0 != ":" }) }
        return names.shuffled(using: &dice).compactMap { left[$0]?.removeFirst() }
    }
}
