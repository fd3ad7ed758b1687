import Ground
import HTTPRules
import Testing
import Trials

/// Random URLs and near-URLs, made of pieces significant to some rule.
struct URLDice {
    var dice: SplitMix64

    private static let schemes = [
        "http://", "https://", "HTTP://", "http:/", "", "ftp://", "httpq://", "http%3A%2F%2F",
    ]
    private static let hosts = [
        "a", "A.b", "a.b.", "1.2.3.4", "1.2.3", "0x1", "1.2.3.04", "[::1]", "[0::1]", "[1:0:0::]",
        "[::ffff:1.2.3.4]", "[::FFFF:1.2.3.4]", "a..b", "-_", "", "xn--a", "u@a", "a%41", "3a",
        "a.3", "\u{E9}", "a,b", "[::1%25a]", "[1:2:3:4:5:6:7:0]",
    ]
    private static let ports = [
        "", "", "", ":", ":80", ":443", ":8080", ":080", ":0", ":65536", ":x",
    ]
    private static let pieces = [
        "/", "/", "/", ".", "..", "a", "b.png", "?", "#", "%41", "%2e", "%2E", "%2F", "%2f", "%20",
        "%C3", "%c3", "%", "%4", "%25", "%2541", "%3F", "%23", "%26", "%22", "%5B", "%5b", "%7F",
        "%0A", "%00", "&", "=", "+", " ", "\"", "[", "]", "{", "\\", "~", "'", "@", ":", "\u{E9}",
        "\u{0}", "\n", "\u{7F}", "\u{80}", "*", "|", "^", "`", "<", "%7E", "%7C", "%60", "%40",
    ]

    mutating func pick(_ choice: [String]) -> String {
        choice[Int.random(in: 0..<choice.count, using: &dice)]
    }

    mutating func next() -> [UInt8] {
        var text = ""
        if Int.random(in: 0..<4, using: &dice) == 0 {
            text = pick(Self.schemes) + pick(Self.hosts) + pick(Self.ports)
        } else {
            text = pick(["http://", "https://"]) + pick(["a", "a.b", "1.2.3.4", "[::1]"])
            text += pick(["", "", ":81", ":80", ":443"]) + "/"
        }
        for _ in 0..<Int.random(in: 0..<7, using: &dice) { text += pick(Self.pieces) }
        // Latin text, so that single bytes above 127 occur too.
        return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}

@Suite struct CacheKeyPropertyTests {
    private let rounds = Trials.count(60_000)

    @Test("Normalising a key does not change it")
    func idempotent() {
        var urls = URLDice(dice: SplitMix64(seed: 11))
        var made = 0
        for _ in 0..<rounds {
            guard case .success(let once) = key(urls.next()) else { continue }
            made += 1
            #expect(key(once) == .success(once), "\(once.text)")
        }
        #expect(made > rounds / 10)
    }

    @Test("A query value is canonical exactly if its key is the value itself")
    func canonical() {
        var urls = URLDice(dice: SplitMix64(seed: 12))
        var canonical = 0
        for _ in 0..<rounds {
            let value = urls.next()
            let bytes = "url=".bytes + value + "&".bytes
            let range = 4..<4 + value.count
            let claimed = CacheKey.isCanonical(bytes.span, at: range)
            #expect(claimed == (decodedKey(value) == .success(value)), "\(value.text)")
            if claimed { canonical += 1 }
        }
        #expect(canonical > rounds / 50)
    }

    @Test("An escaped URL has the key of the URL")
    func encoded() {
        var urls = URLDice(dice: SplitMix64(seed: 13))
        for _ in 0..<rounds / 4 {
            let url = urls.next()
            var value: [UInt8] = []
            for byte in url {
                value.append(UInt8(ascii: "%"))
                for digit in [byte >> 4, byte & 15] {
                    value.append(digit < 10 ? 48 + digit : 87 + digit)
                }
            }
            #expect(decodedKey(value) == key(url), "\(url.text)")
        }
    }

    @Test("A key is ASCII without white space, and its parts make up the key")
    func takenApart() throws {
        var urls = URLDice(dice: SplitMix64(seed: 14))
        for _ in 0..<rounds / 2 {
            guard case .success(let made) = key(urls.next()) else { continue }
            let clean = made.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
            #expect(clean, "\(made.text)")
            let parts = OriginURL(canonical: made.span, at: 0..<made.count)
            let url = try #require(parts)
            let scheme = url.isSecure ? "https://" : "http://"
            #expect(scheme + made.text(url.authority) + made.text(url.target) == made.text)
            #expect(url.port > 0 && !url.host.isEmpty)
            #expect(made.text(url.target).hasPrefix("/"))
        }
    }

    @Test(
        "RFC 9110 §7.2: Host, port and target of a key",
        arguments: [
            ("http://a/", "a", "a", 80, "/", false),
            ("https://a.b/c?d", "a.b", "a.b", 443, "/c?d", false),
            ("http://a:8080/x", "a", "a:8080", 8080, "/x", false),
            ("http://[::1]:81/", "::1", "[::1]:81", 81, "/", true),
            ("https://[1::]/?", "1::", "[1::]", 443, "/?", true),
            ("http://1.2.3.4/:9", "1.2.3.4", "1.2.3.4", 80, "/:9", false),
        ])
    func parts(
        text: String, host: String, authority: String, port: UInt16, target: String, isIPv6: Bool
    ) throws {
        let bytes = "xx".bytes + text.bytes + "yy".bytes
        let parsed = OriginURL(canonical: bytes.span, at: 2..<2 + text.utf8.count)
        let url = try #require(parsed)
        #expect(bytes.text(url.host) == host)
        #expect(bytes.text(url.authority) == authority)
        #expect(bytes.text(url.target) == target)
        #expect(url.port == port && url.isIPv6 == isIPv6)
        #expect(url.isSecure == text.hasPrefix("https"))
    }

    @Test(
        "Text that is no key has no parts",
        arguments: [
            "", "http://", "http://a", "http:///", "ftp://a/", "http://[::1/", "http://a:x/",
        ])
    func notParts(text: String) {
        let bytes = text.bytes
        let parsed = OriginURL(canonical: bytes.span, at: 0..<bytes.count)
        #expect(parsed == nil)
    }
}
