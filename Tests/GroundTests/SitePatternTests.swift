import Ground
import Testing

@Suite("Site patterns and base URLs in configuration")
struct SitePatternTests {
    @Test(
        "A site pattern is kept in canonical form",
        arguments: [
            ("*", "*"), ("A.Example.", "a.example"), ("a.example:8080", "a.example:8080"),
            ("127.0.0.1", "127.0.0.1"), ("[::0001]:80", "[::1]:80"), ("localhost", "localhost"),
        ])
    func patterns(text: String, canonical: String) {
        #expect(SitePattern(text)?.description == canonical)
    }

    @Test(
        "Text that is not a host with an optional port is refused",
        arguments: [
            "", "*.example", "*:80", "a b", "http://a.example", "a.example:0", "a.example:x", "::1",
            "a.example/", "a..b", "127.1",
        ])
    func noPatterns(text: String) {
        #expect(SitePattern(text) == nil)
    }

    @Test(
        "A base URL is kept in canonical form",
        arguments: [
            ("http://O.example", "http://o.example", "o.example", ""),
            ("HTTP://o.example:80/", "http://o.example", "o.example", ""),
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000", "127.0.0.1:9000", ""),
            ("http://[::1]:9000/b", "http://[::1]:9000/b", "[::1]:9000", "/b"),
            ("https://O.example", "https://o.example", "o.example", ""),
            ("HTTPS://o.example:443/a/", "https://o.example/a", "o.example", "/a"),
            ("https://o.example:80", "https://o.example:80", "o.example:80", ""),
            ("http://o.example:443", "http://o.example:443", "o.example:443", ""),
            ("http://o.example/a/%7E/", "http://o.example/a/%7E", "o.example", "/a/%7E"),
        ])
    func bases(text: String, canonical: String, authority: String, path: String) throws {
        let base = try BaseURL(text)
        #expect(base.description == canonical)
        #expect(base.authority == authority)
        #expect(base.isSecure == canonical.hasPrefix("https"))
        #expect(base.path == path)
    }

    @Test(
        "Text that is not a base URL is refused",
        arguments: [
            "o.example", "http://", "http:/o.example", "http://u@o.example", "http://o.example/?q",
            "http://o.example/a b", "http://o.example:0", "ftp://o.example",
            "http://o.example:65536", "https://o.example:x", "https://",
        ])
    func noBases(text: String) {
        #expect(throws: BaseURL.Problem.malformed) { try BaseURL(text) }
    }
}
