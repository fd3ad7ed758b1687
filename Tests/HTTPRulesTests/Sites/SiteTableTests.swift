import Ground
import HTTPRules
import Testing

/// Sites with these patterns, each with an origin of its own.
func siteTable(_ patterns: String...) throws -> SiteTable {
    SiteTable(
        try patterns.enumerated().map { index, pattern in
            Site(
                try #require(SitePattern(pattern)),
                origin: try BaseURL("http://127.0.0.1:\(9000 + index)"))
        })
}

@Suite("Selecting a site by Host")
struct SiteTableTests {
    private func found(_ host: String, _ table: SiteTable) -> String? {
        let bytes = Array("<\(host)>".utf8)
        let index = table.find(bytes.span, at: 1..<bytes.count - 1)
        return index.map { table[$0].name }
    }

    @Test(
        "A name is matched without regard to case, a final dot and a port",
        arguments: [
            "a.example", "A.Example", "a.example.", "a.example:80", "a.example:8080",
            "A.EXAMPLE.:65535", "a.example:", "a.example:00080",
        ])
    func spellings(host: String) throws {
        let table = try siteTable("b.example", "a.example", "aa.example")
        #expect(found(host, table) == "a.example")
    }

    @Test(
        "Other hosts match no site",
        arguments: [
            "", "a.exampl", "a.examples", "c.example", "a.example..", ".", "a.example/", "a/b",
            "a.example:0", "a.example:65536", "a.example:8x", "a.example:80:80", "a%2Eexample",
            "u@a.example", "[::1", "[::1]x", "[g]", ":80",
        ])
    func strangers(host: String) throws {
        #expect(found(host, try siteTable("b.example", "a.example")) == nil)
    }

    @Test("A site with the port matches first, then one without, then the catch-all")
    func portsAndTheRest() throws {
        let table = try siteTable("*", "a.example:8080", "a.example", "b.example:80", "[::1]:81")
        #expect(found("a.example:8080", table) == "a.example:8080")
        #expect(found("a.example:8081", table) == "a.example")
        #expect(found("a.example", table) == "a.example")
        #expect(found("b.example", table) == "b.example:80")
        #expect(found("b.example:8080", table) == "*")
        #expect(found("[::1]:81", table) == "[::1]:81")
        #expect(found("[::1]", table) == "*")
        #expect(found("c.example", table) == "*")
        #expect(found("", table) == "*")
        #expect(found("a/b", table) == nil)
    }

    @Test("Each of a thousand sites is found, and no other name is")
    func many() throws {
        var dice = SplitMix64(seed: 7)
        let names = (0..<1000).map { "\(String($0, radix: 36))-\($0 % 7).example" }
            .shuffled(using: &dice)
        let table = SiteTable(
            try names.map {
                Site(try #require(SitePattern($0)), origin: try BaseURL("http://o.example"))
            })
        for (index, name) in names.enumerated() {
            let bytes = Array(name.uppercased().utf8)
            let found = table.find(bytes.span, at: 0..<bytes.count)
            #expect(found == index)
            #expect(self.found("x" + name, table) == nil)
        }
    }

    @Test("A node without sites matches no host")
    func none() {
        #expect(SiteTable.none.isEmpty)
        #expect(found("a.example", .none) == nil)
        #expect(found("", .none) == nil)
    }

    @Test("Tables of equal sites are equal, and a different setting makes them differ")
    func equality() throws {
        #expect(try siteTable("a.example", "*") == siteTable("a.example", "*"))
        #expect(try siteTable("a.example") != siteTable("b.example"))
        var settings = SiteSettings()
        let plain = try siteTable("a.example")
        settings.grace = .seconds(1)
        let other = SiteTable([
            Site(plain[0].pattern, origin: plain[0].origin, settings: settings)
        ])
        #expect(plain != other)
    }

    @Test("Without a list every method is allowed, otherwise the listed ones, case-sensitively")
    func methods() {
        func takes(_ method: String, _ settings: SiteSettings) -> Bool {
            let bytes = Array(method.utf8)
            return settings.allows(method: bytes.span, at: 0..<bytes.count)
        }
        var settings = SiteSettings()
        #expect(takes("BREW", settings))
        settings.methods = ["GET", "HEAD"]
        #expect(takes("HEAD", settings))
        #expect(!takes("get", settings))
        #expect(!takes("POST", settings))
    }

    @Test("A response has a site's types if every Content-Type is one of them")
    func types() {
        let types = SiteMediaTypes(["text/css", "image/*"])
        #expect(types.accepts(ResponseHead(200, "Content-Type: Text/CSS; charset=utf-8")))
        #expect(types.accepts(ResponseHead(200, "Content-Type: image/Png")))
        #expect(!types.accepts(ResponseHead(200, "Content-Type: image/")))
        #expect(!types.accepts(ResponseHead(200, "Content-Type: text/html")))
        #expect(!types.accepts(ResponseHead(200)))
        #expect(
            !types.accepts(ResponseHead(200, "Content-Type: text/css", "Content-Type: text/html")))
    }
}
