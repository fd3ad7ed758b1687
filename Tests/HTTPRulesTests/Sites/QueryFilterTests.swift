import Ground
import HTTPRules
import Testing
import Trials

@Suite struct QueryFilterTests {
    private static let names = ["a", "utm_*", "fbclid"]

    /// The filtered target; `nil` if it needs no change.
    private func filtered(_ target: String, _ names: [String]) -> String? {
        let bytes = "?a=&".bytes + target.bytes + "&a=1".bytes
        var scratch = "old".bytes
        let isChanged = QueryFilter(ignoring: names)
            .filter(bytes.span, at: 4..<bytes.count - 4, into: &scratch)
        if !isChanged { #expect(scratch.text == "old") }
        return isChanged ? scratch.text : nil
    }

    private static let changing: [(String, String)] = [
        ("/p?a", "/p"), ("/p?a=", "/p"), ("/p?a=1", "/p"), ("/p?a=1=2", "/p"), ("/p?a=1&a=2", "/p"),
        ("/p?a=1&b=2", "/p?b=2"), ("/p?b=2&a=1", "/p?b=2"), ("/p?b=2&a=1&c=3", "/p?b=2&c=3"),
        ("/p?b&utm_source=x&utm_&c", "/p?b&c"), ("/p?fbclid=1&b=a=1", "/p?b=a=1"),
        ("/p?a&&b", "/p?&b"), ("/p?&a&b", "/p?&b"), ("/p?b&a&", "/p?b&"), ("/p?a&", "/p"),
        ("/p?&a", "/p"), ("/p?&&a", "/p?&"), ("/p?c&b&a", "/p?c&b"), ("?a", ""),
        ("/p?b=?&a", "/p?b=?"),
        ("/a?a=/a?a&B=%41", "/a?B=%41"), ("/p?a&?", "/p??"),
    ]

    @Test("Ignored parameters are removed, the others keep order and spelling", arguments: changing)
    func changed(target: String, expected: String) {
        #expect(filtered(target, Self.names) == expected)
    }

    @Test(
        "A target without ignored parameters needs no change",
        arguments: [
            "", "/", "/a", "/p?", "/p?&", "/p?b", "/p?b=a", "/p?A=1", "/p?aa=1", "/p?%61=1",
            "/p?utm=1",
            "/p?xutm_a", "/p?fbclidx", "/p?b=1&&c", "/p?=a", "/p?b?a=1", "/p;a=1?b", "/p?b;a",
        ])
    func unchanged(target: String) {
        #expect(filtered(target, Self.names) == nil)
    }

    @Test("A single star means every parameter, and no names mean none")
    func everything() {
        #expect(filtered("/p?x=1&y", ["*"]) == "/p")
        #expect(filtered("/p?", ["*"]) == "/p")
        #expect(filtered("/p", ["*"]) == nil)
        #expect(filtered("/p?x=1&a", []) == nil)
        #expect(filtered("/p?=1&b", [""]) == "/p?b")
    }

    @Test("Filtering is idempotent and agrees with a simple implementation")
    func properties() {
        var dice = SplitMix64(seed: 91)
        var changed = 0
        for _ in 0..<Trials.count(30_000) {
            let target = "/" + dice.text(of: "ab=&?&*", upTo: 12)
            let names = (0..<Int.random(in: 0...2, using: &dice)).map { _ in
                dice.text(of: "ab*", upTo: 2)
            }
            let expected = plain(target, names)
            let once = filtered(target, names) ?? target
            #expect(once == expected, "\(target) without \(names)")
            #expect((filtered(once, names) ?? once) == once, "\(target) without \(names)")
            if once != target { changed += 1 }
        }
        #expect(changed > Trials.count(3000))
    }

    private func plain(_ target: String, _ names: [String]) -> String {
        guard let mark = target.firstIndex(of: "?") else { return target }
        let all = target[target.index(after: mark)...]
            .split(separator: "&", omittingEmptySubsequences: false)
        let kept = all.filter { parameter in
            let name = parameter.prefix { $0 != "=" }
            return !names.contains {
                $0.hasSuffix("*") ? name.hasPrefix($0.dropLast()) : name == $0
            }
        }
        if kept.count == all.count { return target }
        let query = kept.joined(separator: "&")
        return target[..<mark] + (query.isEmpty ? "" : "?" + query)
    }
}
