import Ground
import HTTPRules
import Testing

/// The key of an unescaped URL, or why there is none.
func key(_ url: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault) -> Result<[UInt8], URLRefusal> {
    var scratch: [UInt8] = "left over".bytes
    switch CacheKey.normalise(url: url.span, at: 0..<url.count, into: &scratch, bytesMax: bytesMax)
    {
    case .normalised: return .success(scratch)
    case .refused(let refusal): return .failure(refusal)
    }
}

func key(_ url: String) -> Result<String, URLRefusal> {
    key(url.bytes).map(\.text)
}

/// The key of a percent-encoded query value within other bytes.
func decodedKey(_ value: [UInt8]) -> Result<[UInt8], URLRefusal> {
    var scratch: [UInt8] = []
    let bytes = "url=".bytes + value + "%".bytes
    let range = 4..<4 + value.count
    switch CacheKey.normalise(percentEncoded: bytes.span, at: range, into: &scratch) {
    case .normalised: return .success(scratch)
    case .refused(let refusal): return .failure(refusal)
    }
}

@Suite struct CacheKeyTests {
    @Test(
        "RFC 3986 §6.2.2 and §6.2.3: equivalent URLs have one key",
        arguments: [
            ("http://a/b", "http://a/b"),
            ("HTTP://A/B", "http://a/B"),
            ("hTTpS://Images.Example/Cat.PNG", "https://images.example/Cat.PNG"),
            ("http://a", "http://a/"),
            ("http://a?", "http://a/?"),
            ("http://a?x", "http://a/?x"),
            ("http://a#top", "http://a/"),
            ("http://a/b#top?x", "http://a/b"),
            ("http://a/b?#top", "http://a/b?"),
            ("http://a/b?c#", "http://a/b?c"),
            ("http://a:/b", "http://a/b"),
            ("http://a:80/b", "http://a/b"),
            ("http://a:0080/b", "http://a/b"),
            ("https://a:443/b", "https://a/b"),
            ("https://a:80/b", "https://a:80/b"),
            ("http://a:443/b", "http://a:443/b"),
            ("http://a:08080/b", "http://a:8080/b"),
            ("http://a:65535/b", "http://a:65535/b"),
            ("http://a./b", "http://a/b"),
            ("http://a.b.c.:81/", "http://a.b.c:81/"),
            ("http://1.2.3.4./", "http://1.2.3.4/"),
            ("http://a_b-c.d/", "http://a_b-c.d/"),
            ("http://xn--mnchen-3ya.de/", "http://xn--mnchen-3ya.de/"),
            ("http://a/%41%7a%2D%5f%7E%2e9", "http://a/Az-_~.9"),
            ("http://a/%2f%c3%a9", "http://a/%2F%C3%A9"),
            ("http://a/%21%26%3d", "http://a/%21%26%3D"),
            ("http://a/b?%41=%c3&d=%2F", "http://a/b?A=%C3&d=%2F"),
            ("http://a/x y", "http://a/x%20y"),
            ("http://a/\"<>\\^`{|}", "http://a/%22%3C%3E%5C%5E%60%7B%7C%7D"),
            ("http://a/?\"<>\\^`{|}[]", "http://a/?%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D"),
            ("http://a/!$&'()*+,;=:@", "http://a/!$&'()*+,;=:@"),
            ("http://a/?/?:@!$&'()*+,;=", "http://a/?/?:@!$&'()*+,;="),
            ("http://a/?b=2&a=1&b=1", "http://a/?b=2&a=1&b=1"),
            ("http://a/?x=/../y/./", "http://a/?x=/../y/./"),
            ("http://a/+?q=a+b", "http://a/+?q=a+b"),
        ])
    func one(url: String, expected: String) {
        #expect(key(url) == .success(expected))
    }

    @Test(
        "RFC 3986 §5.2.4: dot segments are removed, escaped ones too",
        arguments: [
            ("/a/b/c/./../../g", "/a/g"), ("/mid/content=5/../6", "/mid/6"), ("/.", "/"),
            ("/..", "/"), ("/../..", "/"), ("/a/..", "/"), ("/a/.", "/a/"), ("/a/./b", "/a/b"),
            ("/a/../b", "/b"), ("/a/b/..", "/a/"), ("/a/b/../", "/a/"), ("/a//..", "/a/"),
            ("/a//../b", "/a/b"), ("//", "//"), ("//..", "/"), ("/..//", "//"), ("/...", "/..."),
            ("/.a", "/.a"), ("/a.", "/a."), ("/..a", "/..a"), ("/a..", "/a.."),
            ("/a/.../b", "/a/.../b"),
            ("/%2e/b", "/b"), ("/a/%2E%2e/b", "/b"), ("/a/.%2e", "/"), ("/a/%2e./?", "/?"),
            ("/a/..?q", "/?q"), ("/a/.?q", "/a/?q"), ("/a/..#f", "/"), ("/a/b/../../../c", "/c"),
            ("/%2e%2e%2fb", "/..%2Fb"),
        ])
    func dots(path: String, expected: String) {
        #expect(key("http://h" + path) == .success("http://h" + expected))
    }

    @Test(
        "RFC 5952 §4 and §5: an IPv6 host is written in one form",
        arguments: [
            ("::", "::"), ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("1::", "1::"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:0db8:0000:0000:0000:0000:0002:0001", "2001:db8::2:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
            ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"), ("::FFFF:102:304", "::ffff:1.2.3.4"),
            ("::1.2.3.4", "::102:304"), ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("0:0:1::", "0:0:1::"),
        ])
    func ipv6(written: String, expected: String) {
        #expect(key("http://[\(written)]:8080/") == .success("http://[\(expected)]:8080/"))
        #expect(key("http://[\(written)]") == .success("http://[\(expected)]/"))
    }

    @Test(
        "RFC 4291 §2.2: invalid IPv6 addresses are refused",
        arguments: [
            "", ":", ":::", "1", "1:2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::",
            "::g", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", ":1::", "1:", "::1:", "1.2.3.4",
            "::1.2.3", "::1.2.3.4.5", "::256.1.1.1", "::01.2.3.4", "1:2:3:4:5:6:7:1.2.3.4",
            "::1.2.3.4:5", " ::1", "[::1",
        ])
    func notIPv6(written: String) {
        #expect(key("http://[\(written)]/") == .failure(.ipv6(offset: 7)))
    }

    @Test(
        "A host that ends in a number must be a strict IPv4 address",
        arguments: [
            "127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.01",
            "256.0.0.1", "1.2.3", "1.2.3.4.5", "0x", "a.1", "a.0x1F", "a.0X",
            "1.2.3.0x4",
            "09.1.1.1", "1.2.3.08", "999",
        ])
    func numbers(host: String) {
        #expect(key("http://\(host)/") == .failure(.hostNumber(offset: 7)))
        #expect(key("http://\(host)./") == .failure(.hostNumber(offset: 7)))
    }

    @Test(
        "Names that only resemble numbers, and strict IPv4 addresses, are hosts",
        arguments: [
            "127.0.0.1", "0.0.0.0", "255.255.255.255", "1a", "1.a", "0xg", "1.2.3.4a", "3d.example",
            "1.1.1.1.example", "0x7f.example", "a.0y1",
        ])
    func hosts(host: String) {
        #expect(key("http://\(host)/") == .success("http://\(host)/"))
    }

    @Test(
        "A URL that cannot be fetched is refused with the offset",
        arguments: [
            ("", URLRefusal.empty),
            ("a", .scheme), ("/a.png", .scheme), ("//a/b", .scheme), ("a.example/b", .scheme),
            ("http:", .scheme), ("http:/a", .scheme), ("http:a", .scheme), ("ftp://a/", .scheme),
            ("file:///etc/passwd", .scheme), ("data:image/png;base64,AA", .scheme),
            (" http://a/", .scheme), ("javascript://a", .scheme), ("httpss://a/", .scheme),
            ("http:\\\\a\\", .scheme), ("\nhttp://a/", .scheme),
            ("http://", .hostEmpty(offset: 7)), ("https:///a", .hostEmpty(offset: 8)),
            ("http://:80/", .hostEmpty(offset: 7)), ("http://?", .hostEmpty(offset: 7)),
            ("http://#", .hostEmpty(offset: 7)),
            ("http://user@a/", .userInfo(offset: 7)), ("http://u:p@a/", .userInfo(offset: 7)),
            ("http://@a/", .userInfo(offset: 7)), ("http://a:80@b/", .userInfo(offset: 7)),
            ("http://a b/", .hostByte(offset: 8, byte: 0x20)),
            ("http://a\\b/", .hostByte(offset: 8, byte: 0x5C)),
            ("http://a%41/", .hostByte(offset: 8, byte: 0x25)),
            ("http://a,b/", .hostByte(offset: 8, byte: 0x2C)),
            ("http://a~/", .hostByte(offset: 8, byte: 0x7E)),
            ("http://*/", .hostByte(offset: 7, byte: 0x2A)),
            ("http://a]/", .hostByte(offset: 8, byte: 0x5D)),
            ("http://[::1]a/", .hostByte(offset: 12, byte: 0x61)),
            ("http://[::1]]/", .hostByte(offset: 12, byte: 0x5D)),
            ("http://m\u{FC}nchen.de/", .hostNotASCII(offset: 8)),
            ("http://a..b/", .hostLabel(offset: 9)), ("http://.a/", .hostLabel(offset: 7)),
            ("http://./", .hostLabel(offset: 7)), ("http://a../", .hostLabel(offset: 9)),
            ("http://[::1/", .ipv6(offset: 7)), ("http://[", .ipv6(offset: 7)),
            ("http://[fe80::1%25eth0]/", .ipv6Zone(offset: 15)),
            ("http://[fe80::1%eth0]/", .ipv6Zone(offset: 15)),
            ("http://a:0/", .port(offset: 9)), ("http://a:65536/", .port(offset: 9)),
            ("http://a:99999999999999999999999/", .port(offset: 9)),
            ("http://a:x/", .port(offset: 9)),
            ("http://a:-1/", .port(offset: 9)), ("http://a:80:80/", .port(offset: 9)),
            ("http://a:000000/", .port(offset: 9)), ("http://a: 80/", .port(offset: 9)),
            ("http://a/%", .escape(offset: 9)), ("http://a/%4", .escape(offset: 9)),
            ("http://a/%zz", .escape(offset: 9)), ("http://a/?b=%%41", .escape(offset: 12)),
            ("http://a/%4%31", .escape(offset: 9)),
            ("http://a\u{0}/", .control(offset: 8, byte: 0)),
            ("http://a/\u{0}", .control(offset: 9, byte: 0)),
            ("http://a/b\r\nHost: c", .control(offset: 10, byte: 13)),
            ("http://a/?\n", .control(offset: 10, byte: 10)),
            ("http://a/\t", .control(offset: 9, byte: 9)),
            ("http://a/\u{7F}", .control(offset: 9, byte: 0x7F)),
            ("http://a/#\u{1}", .control(offset: 10, byte: 1)),
            ("http://a\u{1F}b/", .control(offset: 8, byte: 0x1F)),
            ("http://[\r]/", .control(offset: 8, byte: 13)),
        ])
    func refused(url: String, reason: URLRefusal) {
        #expect(key(url) == .failure(reason))
    }

    @Test("RFC 1035 §2.3.4: a label has at most 63 bytes and a name at most 253")
    func longNames() {
        let label = String(repeating: "a", count: 63)
        #expect(key("http://\(label)/") == .success("http://\(label)/"))
        #expect(key("http://b.\(label)a/") == .failure(.hostLabel(offset: 9)))
        let name = [label, label, label, String(label.dropLast(2))].joined(separator: ".")
        #expect(key("http://\(name)/") == .success("http://\(name)/"))
        #expect(key("http://\(name)./") == .success("http://\(name)/"))
        #expect(key("http://\(name)a/") == .failure(.hostTooLong(offset: 7)))
    }

    @Test("The limit counts the bytes of the key, not those sent")
    func limit() {
        let url = "http://a/bcd"
        #expect(key(url.bytes, bytesMax: 12) == .success(url.bytes))
        #expect(key(url.bytes, bytesMax: 11) == .failure(.tooLong(bytesMax: 11)))
        #expect(key("http://a/./bcd#xyz".bytes, bytesMax: 12) == .success(url.bytes))
        #expect(key("http://a/b c".bytes, bytesMax: 12) == .failure(.tooLong(bytesMax: 12)))
        let longest = "http://a/" + String(repeating: "b", count: CacheKey.bytesMaxDefault - 9)
        #expect(key(longest) == .success(longest))
        #expect(key(longest + "b") == .failure(.tooLong(bytesMax: CacheKey.bytesMaxDefault)))
    }

    @Test(
        "A query value is decoded once, and a plus is not a space",
        arguments: [
            ("http%3A%2F%2Fa%2Fb%3Fc%3Dd%26e", "http://a/b?c=d&e"),
            ("http%3a%2f%2fa%2fb", "http://a/b"),
            ("http://a/b", "http://a/b"),
            ("http%3A%2F%2Fa%2Fb%2520c", "http://a/b%20c"),
            ("http%3A%2F%2Fa%2Fb%252Fc", "http://a/b%2Fc"),
            ("http%3A%2F%2Fa%2Fb%25252F", "http://a/b%252F"),
            ("http%3A%2F%2Fa%2Fb+c", "http://a/b+c"),
            ("http%3A%2F%2Fa%2Fb%2Bc", "http://a/b+c"),
            ("http%3A%2F%2Fa%2F%C3%A9", "http://a/%C3%A9"),
            ("http%3A%2F%2FA%3A80%2F..%2Fx%23y", "http://a/x"),
            ("http%3A%2F%2Fa%2F%2541", "http://a/A"),
        ])
    func decoded(value: String, expected: String) {
        #expect(decodedKey(value.bytes).map(\.text) == .success(expected))
    }

    @Test(
        "A query value with a malformed escape is refused before all else",
        arguments: [
            ("%", URLRefusal.valueEscape(offset: 0)), ("http://a/%", .valueEscape(offset: 9)),
            ("http://a/%4", .valueEscape(offset: 9)), ("%zz", .valueEscape(offset: 0)),
            ("http://a/%4g", .valueEscape(offset: 9)), ("a%%41", .valueEscape(offset: 1)),
            ("http%3A%2F%2Fa%2F%25", .escape(offset: 9)),
            ("http%3A%2F%2Fa%2F%0D%0A", .control(offset: 9, byte: 13)),
            ("http%3A%2F%2Fa%2F%00", .control(offset: 9, byte: 0)), ("", .empty),
        ])
    func brokenEscape(value: String, reason: URLRefusal) {
        #expect(decodedKey(value.bytes) == .failure(reason))
    }
}
