import Ground
import Testing

@Suite("Origin patterns")
struct OriginPatternTests {
    @Test(
        "A pattern matches the hosts and ports that it names",
        arguments: [
            ("*", "any.example", 80, true), ("*:8080", "any.example", 8080, true),
            ("*:8080", "any.example", 80, false),
            ("images.example", "images.example", 443, true),
            ("Images.Example", "images.example", 80, true),
            ("images.example", "a.images.example", 80, false),
            ("images.example", "images.example.net", 80, false),
            ("images.example:9000", "images.example", 9000, true),
            ("images.example:9000", "images.example", 80, false),
            ("*.example", "a.example", 80, true), ("*.example", "a.b.example", 80, true),
            ("*.example", "example", 80, false), ("*.example", "badexample", 80, false),
            ("*.example", ".example", 80, false), ("*.example:81", "a.example", 80, false),
            ("10.0.0.7:9000", "10.0.0.7", 9000, true),
            ("127.0.0.1:9000", "127.0.0.2", 9000, false),
            ("[FD00:0::1]", "fd00::1", 80, true), ("[fd00::1]:81", "fd00::1", 80, false),
            ("*", "::1", 80, true), ("A.Example.", "a.example", 80, true),
            ("a.example", "a.example.", 80, true), ("*.example", "a.example.", 80, true),
        ] as [(String, String, UInt16, Bool)])
    func patternsMatch(pattern: String, host: String, port: UInt16, isMatch: Bool) throws {
        let pattern = try #require(OriginPattern(pattern))
        #expect(pattern.matches(host: host, port: port) == isMatch)
    }

    @Test(
        "A pattern is written in a form that can be parsed",
        arguments: [
            ("*", "*"), ("*:80", "*:80"), ("A.example", "a.example"), ("*.B:9", "*.b:9"),
            ("[::0]:81", "[::]:81"), ("a.", "a"), ("10.0.0.7:9", "10.0.0.7:9"),
        ])
    func patternsAreShown(text: String, shown: String) {
        #expect(OriginPattern(text)?.description == shown)
    }

    @Test(
        "Other text is not parsed as a pattern",
        arguments: [
            "", ".", "*.", "**", "*a.example", "a.*.example", "a..b", ".a", "a..", "a b", "127.1",
            "a.1",
            "http://a.example", "a.example/", "a.example:", "a.example:0", "a.example:65536",
            "a.example:80:80", "user@a.example", "bücher.example", "[a.example]", "[::1", "::1",
            "[127.0.0.1]", "*.[::1]", String(repeating: "a", count: 64),
            String(repeating: "a.", count: 127) + "a",
        ])
    func otherTextIsNoPattern(text: String) {
        #expect(OriginPattern(text) == nil)
    }
}
