import Ground
import HTTPRules
import Testing

@Suite("The names under which a purged URL may be stored")
struct PurgeNameTests {
    private func sites(_ list: (String, (inout SiteSettings) -> Void)...) throws -> SiteTable {
        SiteTable(
            try list.map { name, change in
                var settings = SiteSettings()
                change(&settings)
                return Site(
                    try #require(SitePattern(name)), origin: try BaseURL("http://10.0.0.7:9000"),
                    settings: settings)
            })
    }

    private func urls(_ text: String, _ sites: SiteTable) throws -> [String] {
        try PurgeTarget.url(parsing: text.bytes).expanded(sites).map { name in
            guard case .url(let name) = name else { return "no URL" }
            return name.text
        }
    }

    @Test("A named site's responses are under its own name, whatever the client's port")
    func namedSite() throws {
        let table = try sites(("www.test", { _ in }), ("one.test:8080", { _ in }))
        #expect(try urls("http://www.test/a", table) == ["www.test/a"])
        #expect(
            try urls("https://www.test:8080/a?b", table) == ["www.test:8080/a?b", "www.test/a?b"])
        #expect(try urls("http://one.test:8080/a", table) == ["one.test:8080/a"])
        #expect(try urls("http://other.test:8080/a", table) == ["other.test:8080/a"])
        let prefix = try PurgeTarget.prefix(parsing: "www.test:8080/a/".bytes)
        #expect(
            prefix.expanded(table) == [
                .prefix(host: "www.test:8080".bytes, path: "/a/".bytes),
                .prefix(host: "www.test".bytes, path: "/a/".bytes),
            ])
    }

    @Test("Ignored query parameters are not in the name")
    func ignoredQuery() throws {
        let table = try sites(("www.test", { $0.ignoredQuery = ["utm_*"] }))
        #expect(
            try urls("http://www.test/a?utm_source=x&b=1", table)
                == ["www.test/a?utm_source=x&b=1", "www.test/a?b=1"])
    }

    @Test("A URL of the image API names the image, except on the host of a named site")
    func imageAPI() throws {
        let table = try sites(("www.test", { _ in }), ("*", { _ in }))
        let query = "/v1/image?url=https%3A%2F%2Fo.test%2Fp.jpg%3Fw%3D1"
        for sites in [table, .none] {
            #expect(
                try urls("http://127.0.0.1:8080" + query, sites).last == "o.test/p.jpg?w=1")
        }
        #expect(try urls("http://www.test" + query, table) == ["www.test" + query])
        #expect(try urls("http://x.test/v1/image?src=1", table) == ["x.test/v1/image?src=1"])
    }

    @Test("A signature is not in the name")
    func signed() throws {
        let table = try sites(("s.test", { $0.requiresSignature = true }), ("u.test", { _ in }))
        let end = "signature=" + String(repeating: "A", count: 43)
        #expect(try urls("http://s.test/a?\(end)", table).last == "s.test/a")
        #expect(try urls("http://u.test/a?\(end)", table) == ["u.test/a?\(end)"])
        #expect(
            try urls("http://n.test/v1/image?url=http%3A%2F%2Fo.test%2Fp&\(end)", table).last
                == "o.test/p")
    }

    @Test("A URL of an origin has the names of its sites")
    func origins() throws {
        func site(_ name: String, _ origin: String) throws -> Site {
            Site(try #require(SitePattern(name)), origin: try BaseURL(origin))
        }
        let table = SiteTable(
            try [
                site("a.test", "http://o.test:9000"), site("b.test", "http://o.test:9000/b/"),
                site("c.test", "https://o.test"), site("*", "http://o.test:9000"),
            ])
        #expect(
            try urls("http://o.test:9000/b/x?y", table)
                == ["o.test:9000/b/x?y", "a.test/b/x?y", "b.test/x?y"])
        #expect(try urls("http://o.test:9000/bx", table) == ["o.test:9000/bx", "a.test/bx"])
        #expect(try urls("http://o.test/x", table) == ["o.test/x", "c.test/x"])
        #expect(try urls("http://o.test:9000/", table) == ["o.test:9000/", "a.test/"])

        func prefixes(_ text: String) throws -> [String] {
            try PurgeTarget.prefix(parsing: text.bytes).expanded(table).map { name in
                guard case .prefix(let host, let path) = name else { return "no prefix" }
                return host.text + " " + path.text
            }
        }
        #expect(
            try prefixes("o.test:9000/b/i/")
                == ["o.test:9000 /b/i/", "a.test /b/i/", "b.test /i/"])
        for text in ["o.test:9000/b", "o.test:9000/b/"] {
            #expect(try prefixes(text).last == "b.test ", "\(text)")
        }
        #expect(try !prefixes("o.test:9000/bb").contains("b.test "))
        #expect(try prefixes("o.test:9000") == ["o.test:9000 ", "a.test ", "b.test "])
        #expect(try prefixes("o.test") == ["o.test ", "a.test ", "b.test ", "c.test "])
        #expect(try prefixes("o.tes") == ["o.tes "])
    }

    @Test("A site that names the default port has two names")
    func portOfScheme() throws {
        let table = try sites(("w.test:80", { _ in }))
        #expect(try urls("http://w.test/a", table) == ["w.test/a", "w.test:80/a"])
        #expect(try urls("https://w.test:80/a", table) == ["w.test:80/a"])
    }

    @Test("Targets with equal names are combined, in order")
    func once() throws {
        let targets = try [
            PurgeTarget.tag(parsing: "t".bytes), .url(parsing: "http://a.test/x".bytes),
            .url(parsing: "https://a.test/x".bytes), .everything, .everything,
        ]
        #expect(
            targets.expanded(.none)
                == [.tag("t".bytes), .url("a.test/x".bytes), .everything])
    }
}
