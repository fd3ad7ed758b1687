import Origin
import Testing

@Suite("Patterns of allowed origins")
struct OriginPatternTests {
    @Test(
        "A pattern matches the origins it names and no others",
        arguments: [
            ("*", ["a.example:80", "1.2.3.4:8080", "::1:80"], []),
            ("*:8080", ["a.example:8080"], ["a.example:80"]),
            (
                "a.example", ["a.example:80", "a.example:8080"],
                ["b.a.example:80", "xa.example:80"]
            ),
            ("A.Example.", ["a.example:80"], ["example:80"]),
            ("a.example:8080", ["a.example:8080"], ["a.example:80"]),
            (
                "*.example", ["a.example:80", "b.a.example:81"],
                ["example:80", "aexample:80", ".example:80"]
            ),
            ("*.example:81", ["a.example:81"], ["a.example:80"]),
            ("127.0.0.1:9000", ["127.0.0.1:9000"], ["127.0.0.2:9000", "127.0.0.1:80"]),
            ("[2001:DB8::0]:80", ["2001:db8:::80"], ["2001:db8::1:80"]),
            ("::1", ["::1:80", "::1:81"], ["::2:80"]),
        ])
    func matches(text: String, these: [String], notThese: [String]) throws {
        let pattern = try OriginPattern(text)
        for text in these { #expect(pattern.matches(try origin(text)), "\(text)") }
        for text in notThese { #expect(!pattern.matches(try origin(text)), "\(text)") }
    }

    @Test(
        "A wrong pattern is refused with what was wrong",
        arguments: [
            ("", OriginPatternError.notAHost("")), ("*.", .notAHost("*.")),
            ("a*.example", .notAHost("a*.example")), ("a..b", .notAHost("a..b")),
            ("**", .notAHost("**")), ("http://a.example", .port("http://a.example")),
            ("a.example:", .port("a.example:")), ("a.example:0", .port("a.example:0")),
            ("a.example:65536", .port("a.example:65536")), ("a/b", .notAHost("a/b")),
            ("bücher.example", .notASCII("bücher.example")), ("a b", .notASCII("a b")),
            ("[::1", .notAHost("[::1")), ("[1.2.3.4]", .notAHost("[1.2.3.4]")),
        ])
    func refused(text: String, error: OriginPatternError) {
        #expect(throws: error) { try OriginPattern(text) }
    }

    /// Host and port, the port after the last colon.
    private func origin(_ text: String) throws -> OriginAuthority {
        let colon = try #require(text.lastIndex(of: ":"))
        let port = try #require(UInt16(text[text.index(after: colon)...]))
        return OriginAuthority(host: String(text[..<colon]), port: port)
    }
}
