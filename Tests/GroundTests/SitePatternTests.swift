import Ground
import Testing

@Suite("Patterns of hosts and bases of URLs, as operators write them")
struct SitePatternTests {
    @Test(
        "what a site answers to is kept in canonical form",
        arguments: [
            ("*", "*"), ("A.Example.", "a.example"), ("a.example:8080", "a.example:8080"),
            ("127.0.0.1", "127.0.0.1"), ("[::0001]:80", "[::1]:80"), ("localhost", "localhost"),
        ])
    func patterns(text: String, canonical: String) {
        #expect(SitePattern(text)?.description == canonical)
    }

    @Test(
        "what is no host and port is refused",
        arguments: [
            "", "*.example", "*:80", "a b", "http://a.example", "a.example:0", "a.example:x", "::1",
            "a.example/", "a..b", "127.1",
        ])
    func noPatterns(text: String) {
        #expect(SitePattern(text) == nil)
    }

    @Test(
        "where answers come from is kept in canonical form",
        arguments: [
            ("http://O.example", "http://o.example", "o.example", ""),
            ("HTTP://o.example:80/", "http://o.example", "o.example", ""),
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000", "127.0.0.1:9000", ""),
            ("http://[::1]:9000/b", "http://[::1]:9000/b", "[::1]:9000", "/b"),
            ("http://o.example/a/%7E/", "http://o.example/a/%7E", "o.example", "/a/%7E"),
        ])
    func bases(text: String, canonical: String, authority: String, path: String) throws {
        let base = try BaseURL(text)
        #expect(base.description == canonical)
        #expect(base.authority == authority)
        #expect(base.path == path)
    }

    @Test(
        "what is no base of URLs is refused, and https with a reason of its own",
        arguments: [
            ("o.example", BaseURL.Problem.malformed), ("http://", .malformed),
            ("http:/o.example", .malformed), ("http://u@o.example", .malformed),
            ("http://o.example/?q", .malformed), ("http://o.example/a b", .malformed),
            ("http://o.example:0", .malformed), ("ftp://o.example", .malformed),
            ("http://o.example:65536", .malformed), ("https://o.example:x", .malformed),
            ("https://o.example", .secure), ("HTTPS://o.example:8443/a", .secure),
        ])
    func noBases(text: String, problem: BaseURL.Problem) {
        #expect(throws: problem) { try BaseURL(text) }
    }
}
