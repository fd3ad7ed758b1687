import HTTPRules
import Testing

/// Services with the original in a query parameter.
@Suite struct QueryServiceTests {
    @Test(
        "wsrv.nl: the scheme is http by default",
        arguments: [
            ("/?url=wsrv.nl/lichtenstein.jpg&w=300", "http://wsrv.nl/lichtenstein.jpg"),
            ("?url=wsrv.nl/lichtenstein.jpg", "http://wsrv.nl/lichtenstein.jpg"),
            ("/?w=300&url=https://wsrv.nl/lichtenstein.jpg", "https://wsrv.nl/lichtenstein.jpg"),
            ("/?url=ssl:wsrv.nl/lichtenstein.jpg&fit=cover", "https://wsrv.nl/lichtenstein.jpg"),
            ("/?url=SSL%3Awsrv.nl%2Flichtenstein.jpg", "https://wsrv.nl/lichtenstein.jpg"),
            ("/?url=//wsrv.nl/lichtenstein.jpg", "https://wsrv.nl/lichtenstein.jpg"),
            (
                "/?url=ssl:wsrv.nl%2F%3Furl%3Da.b%2Fc.jpg%26w%3D9",
                "https://wsrv.nl/?url=a.b/c.jpg&w=9"
            ),
            ("/?URL=a.example/b", "http://a.example/b"),
            ("/?url=a.example/b&url=c.example/d", "http://a.example/b"),
            ("/?url=a.example/b+c%2520d", "http://a.example/b+c%20d"),
            ("/?url=a.example:8080/b", "http://a.example:8080/b"),
            ("/?url=a.example/b&default=ssl:c.example/d", "http://a.example/b"),
            ("/?&&url=a.example", "http://a.example/"),
        ])
    func weserv(target: String, expected: String) throws {
        #expect(try original("weserv", of: target) == expected)
        #expect(try original("weserv /resize", of: "/resize" + target) == expected)
    }

    @Test(
        "Targets without an original for wsrv.nl",
        arguments: [
            "", "/", "/?", "/?url", "/?url=", "/?w=300", "/?urls=a/b", "/x?url=a.example/b",
            "/?url=%", "/?url=ssl:", "/?url=//", "/?url=ftp://a/b", "/?url=http://u@a/b",
            "/?url=a%0Ab", "/docs/?url=a.example/b",
        ])
    func notWeserv(target: String) throws {
        #expect(try original("weserv", of: target) == nil)
    }

    @Test(
        "Next.js: a path is the site's own, a URL is absolute",
        arguments: [
            ("/_next/image?url=%2Fprofile.png&w=640&q=75", "http://10.0.0.7:9000/profile.png"),
            (
                "/_next/image?url=%2F_next%2Fstatic%2Fmedia%2Fsolscan.0297f978.png&w=640&q=75",
                "http://10.0.0.7:9000/_next/static/media/solscan.0297f978.png"
            ),
            (
                "/_next/image?url=https%3A%2F%2Fs3.amazonaws.com%2Fmy-bucket%2Fprofile.png&w=96",
                "https://s3.amazonaws.com/my-bucket/profile.png"
            ),
            ("/_next/image/?w=640&q=75&url=/me.png", "http://10.0.0.7:9000/me.png"),
            ("/_next/image?url=/me.png%3Fv%3D2", "http://10.0.0.7:9000/me.png?v=2"),
            ("/_next/image?url=/a+b%2Bc.png", "http://10.0.0.7:9000/a%20b+c.png"),
            ("/_next/image?url=%2Fa%2520b.png&dpl=x", "http://10.0.0.7:9000/a%20b.png"),
        ])
    func nextjs(target: String, expected: String) throws {
        #expect(try original("nextjs", of: target) == expected)
        #expect(try original("nextjs /docs", of: "/docs" + target) == expected)
    }

    @Test("Paths are appended to the origin's path, or to the rule's base URL")
    func nextBase() throws {
        let target = "/_next/image?url=%2Fme.png&w=640&q=75"
        for origin in ["https://app.example/shop", "https://app.example/shop/"] {
            let found = try original("nextjs", of: target, origin: origin)
            #expect(found == "https://app.example/shop/me.png")
        }
        let found = try original("nextjs https://www.example.com", of: target)
        #expect(found == "https://www.example.com/me.png")
    }

    @Test(
        "Targets without an original for Next.js",
        arguments: [
            "", "/", "/_next/image", "/_next/image?", "/_next/image?url=", "/_next/image?w=1&q=75",
            "/_next/image?url=//a.example/b.png", "/_next/image?url=%2F%2Fa.example/b.png",
            "/_next/image?url=me.png", "/_next/image?url=a.example/b.png",
            "/_next/image?url=/a.png&url=/b.png", "/_next/image?URL=/a.png",
            "/_next/image?url=data:image/png;base64,AAAA", "/_next/image?url=ftp://a/b",
            "/_next/image?url=%2Fa%", "/_next/images?url=/a.png", "/x/_next/image?url=/a.png",
        ])
    func notNext(target: String) throws {
        #expect(try original("nextjs", of: target) == nil)
        #expect(try original("nextjs https://www.example.com", of: target) == nil)
    }
}
