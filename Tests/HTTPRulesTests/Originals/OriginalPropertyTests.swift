import Ground
import HTTPRules
import Testing
import Trials

/// Random targets and near-targets, made of pieces significant to some rule.
private struct TargetDice {
    var dice: SplitMix64

    private static let pieces = [
        "/", "/", "//", "?", "&", "=", "@", ":", ".", "..", "%", "%2", "%2F", "%3A", "%25", "%zz",
        "+", "-", "_", "x", "(", ")", "#", "{", "}", "*", "\u{0}", "\u{FF}", "\u{E9}", " ", "plain",
        "enc", "unsafe", "300x200", "fit-in", "smart", "filters:", "filters:a()", "trim:", "trim",
        "1x2:3x4", "rs:fit:1:2", "url=", "src=", "w=1", "_next/image", "thumbs", "http://", "http:",
        "https%3A%2F%2F", "ssl:", "//a.b", "a.b/c.jpg", "aHR0cDovL2EvYg", "aHR0cDov", "L2EvYg",
        "QQ",
        "K97LekICOXT9MbO3X1u8BBkrjbu5",
    ]

    private static let starts = [
        "", "/", "/unsafe/", "/_/w:1/", "/_/plain/http://", "/_/aHR0cDov", "/?url=",
        "/_next/image?url=", "/t?w=1&src=", "/thumbs/s/http://",
    ]

    mutating func next() -> [UInt8] {
        var text = dice.pick(Self.starts)
        for _ in 0..<Int.random(in: 0..<9, using: &dice) { text += dice.pick(Self.pieces) }
        text += dice.pick(["", "", ".webp"])
        // Latin text, so that single bytes above 127 occur too.
        return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}

extension SplitMix64 {
    fileprivate mutating func pick(_ choice: [String]) -> String {
        choice[Int.random(in: 0..<choice.count, using: &self)]
    }
}

@Suite struct OriginalPropertyTests {
    private static let rules = [
        "imgproxy", "imgproxy https://b.example/", "thumbor", "thumbor https://b.example/x",
        "weserv",
        "nextjs", "/{original*}", "/{original*}?*", "/{a}x{b}/{original}",
        "/thumbs/{s}/{url*}.webp",
        "/t?src={original}&w={w}", "/?url={url} https://",
    ]

    @Test("Any bytes have no original, or one that is a valid cache key", arguments: rules)
    func anyBytes(rule: String) throws {
        var targets = TargetDice(dice: SplitMix64(seed: 801))
        var found = 0
        for _ in 0..<Trials.count(4000) {
            let target = targets.next()
            guard let original = try original(rule, of: target) else { continue }
            found += 1
            #expect(key(original) == .success(original), "\(target.text)")
        }
        #expect(found > 10 || Trials.isReduced)
    }

    @Test("An original that is too long is none", arguments: rules)
    func tooLong(rule: String) throws {
        var targets = TargetDice(dice: SplitMix64(seed: 802))
        for _ in 0..<Trials.count(500) {
            let target = targets.next()
            guard let found = try original(rule, of: target) else { continue }
            #expect(try original(rule, of: target, bytesMax: found.count) == found)
            #expect(try original(rule, of: target, bytesMax: found.count - 1) == nil)
        }
    }

    @Test("Long targets of one segment are read to their end", arguments: rules)
    func long(rule: String) throws {
        for piece in ["/", "a/", "x", "%2F", "1x2/", "a:b/", "a)/", "A", "@", "&", "a=b&", "url="] {
            let target =
                "/" + String(repeating: piece, count: Trials.count(100_000) / piece.utf8.count)
            for start in ["", "/unsafe/filters:a", "/_", "/_next/image?url=", "/t?w=1&src="] {
                let found = try original(rule, of: start + target)
                #expect(found?.utf8.count ?? 0 <= CacheKey.bytesMaxDefault)
            }
        }
    }

    @Test(
        "A target built from an original by a rule gives that original back",
        arguments: [
            ("imgproxy", "/_/rs:fill:3:4/plain/%@png"), ("imgproxy", "/_/plain/%"),
            ("imgproxy", "/sig/w:100/^.webp"), ("imgproxy", "/sig/^"),
            ("imgproxy /p", "/p/sig/preset/^.png"), ("thumbor", "/unsafe/3x4/smart/%"),
            ("thumbor", "/unsafe/filters:a(http://c/d)/%"), ("weserv", "/?url=%&w=3"),
            ("nextjs", "/_next/image?url=%&w=640&q=75"), ("/{a}/{url*}", "/a/%"),
            ("/{a}/{url*}.webp", "/a/%.webp"), ("/{a}-{url}/{c}", "/a-%/c"),
            ("/{original}", "/%"), ("/t?u={original}", "/t?u=%"), ("/t?u={url}&v=1", "/t?v=1&u=%"),
        ])
    func built(rule: String, form: String) throws {
        var urls = URLDice(dice: SplitMix64(seed: 803))
        var count = 0
        while count < Trials.count(400) {
            guard case .success(let url) = key(urls.next()) else { continue }
            count += 1
            let target = form.bytes.flatMap { byte in
                switch byte {
                case UInt8(ascii: "%"): url.escaped
                case UInt8(ascii: "^"): url.base64
                default: [byte]
                }
            }
            #expect(try original(rule, of: target) == url, "\(target.text)")
        }
    }

    @Test("A raw URL in a path gives itself back")
    func raw() throws {
        var urls = URLDice(dice: SplitMix64(seed: 804))
        for _ in 0..<Trials.count(4000) {
            guard case .success(let url) = key(urls.next()) else { continue }
            #expect(try original("/{a}/{url*}?*", of: "/a/".bytes + url) == url, "\(url.text)")
        }
    }

    @Test("A parsed template is written as the same text, and every error is within its text")
    func templates() {
        var dice = SplitMix64(seed: 805)
        let pieces = [
            "/", "{a}", "{b}", "{original}", "{original*}", "{url}", "{url*}", "?", "?*", "&", "=",
            "x", "y=", "z={c}", "%20", "{", "}", "*", "#", "\u{E9}", "a=b",
        ]
        var read = 0
        for _ in 0..<Trials.count(30_000) {
            var text = "/"
            for _ in 0..<Int.random(in: 0..<8, using: &dice) { text += dice.pick(pieces) }
            do throws(OriginalRuleFault) {
                let rule = try OriginalRule(text)
                #expect(rule.description == text)
                read += 1
            } catch {
                #expect((0...text.utf8.count).contains(error.offset), "\(text)")
                #expect(error.description.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            }
        }
        #expect(read > Trials.count(500))
    }
}
