import Ground
import HTTPRules
import Testing

@Suite("Targets of purges")
struct PurgeTargetTests {
    @Test(
        "All spellings of a URL are one target",
        arguments: [
            "http://a.test/x/y?q=1", "HTTP://A.test:80/x/y?q=1", "http://a.test./x/z/../y?q=1#here",
            "//a.test/x/y?q=1", "http://a.test/x/%79?q=1",
        ])
    func spellings(text: String) throws {
        let target = try PurgeTarget.url(parsing: text.bytes)
        #expect(target == .url("a.test/x/y?q=1".bytes))
        #expect(target.expanded(.none) == [target])
    }

    @Test("http and https of a URL have one name, other ports have others")
    func schemes() throws {
        for (text, name) in [
            ("https://a.test/x", "a.test/x"), ("https://a.test:443/x", "a.test/x"),
            ("https://a.test:80/x", "a.test:80/x"), ("http://a.test:8080/x", "a.test:8080/x"),
        ] {
            let target = try PurgeTarget.url(parsing: text.bytes)
            #expect(target.expanded(.none) == [.url(name.bytes)])
        }
    }

    private static let prefixes: [(String, String, String)] = [
        ("https://a.test", "a.test", ""), ("https://a.test/", "a.test", ""),
        ("a.test", "a.test", ""), ("//A.TEST", "a.test", ""), ("a.test:8080", "a.test:8080", ""),
        ("https://a.test/img", "a.test", "/img"), ("a.test/img/", "a.test", "/img/"),
        ("http://[::1]:81/a", "[::1]:81", "/a"), ("a.test/x/../%69mg", "a.test", "/img"),
        ("a.test/x://y", "a.test", "/x://y"),
    ]

    @Test("A prefix is a host, or a host and a path", arguments: prefixes)
    func prefix(text: String, host: String, path: String) throws {
        let target = try PurgeTarget.prefix(parsing: text.bytes)
        #expect(target.expanded(.none) == [.prefix(host: host.bytes, path: path.bytes)])
    }

    @Test("Invalid targets are refused")
    func refusals() {
        typealias Fault = PurgeTargetFault
        #expect(throws: Fault.url(.empty)) { try PurgeTarget.url(parsing: []) }
        #expect(throws: Fault.url(.scheme)) { try PurgeTarget.url(parsing: "/a.jpg".bytes) }
        #expect(throws: Fault.url(.scheme)) { try PurgeTarget.url(parsing: "ftp://a/".bytes) }
        #expect(throws: Fault.url(.scheme)) { try PurgeTarget.prefix(parsing: "ftp://a/".bytes) }
        #expect(throws: Fault.url(.empty)) { try PurgeTarget.prefix(parsing: []) }
        for text in ["http://a.test/x?", "a.test/x#y", "http://a.test?x=1"] {
            #expect(throws: Fault.prefixQuery) { try PurgeTarget.prefix(parsing: text.bytes) }
        }
        #expect(throws: Fault.url(.tooLong(bytesMax: 20))) {
            try PurgeTarget.url(parsing: "http://a.test/0123456789".bytes, bytesMax: 20)
        }
    }

    @Test("A tag is a text that an origin can send")
    func tags() throws {
        let long = [UInt8](repeating: 0x78, count: 1024)
        for tag in ["a".bytes, "a b".bytes, "a,b".bytes, "\u{e9}".bytes, [0xE9], long] {
            #expect(try PurgeTarget.tag(parsing: tag).expanded(.none) == [.tag(tag)])
        }
        typealias Fault = PurgeTargetFault
        #expect(throws: Fault.tagEmpty) { try PurgeTarget.tag(parsing: []) }
        #expect(throws: Fault.tagTooLong) { try PurgeTarget.tag(parsing: long + [0x78]) }
        for tag in [" a", "a ", "\ta", " "] {
            #expect(throws: Fault.tagWhitespace) { try PurgeTarget.tag(parsing: tag.bytes) }
        }
        for tag in [URLName.tag("a.test/x".bytes[...]), "a\u{7f}".bytes, "a\nb".bytes] {
            #expect(throws: Fault.tagControl) { try PurgeTarget.tag(parsing: tag) }
        }
    }
}
