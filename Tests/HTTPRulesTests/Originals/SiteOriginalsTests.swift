import Ground
import HTTPRules
import Testing

@Suite("The originals of a site's responses")
struct SiteOriginalsTests {
    private func site(
        _ rules: String..., name: String = "img.test", origin: String = "http://10.0.0.7:9000",
        ignoring: [String] = []
    ) throws -> Site {
        var settings = SiteSettings()
        settings.originals = try rules.map { try OriginalRule($0) }
        settings.ignoredQuery = ignoring
        return Site(
            try #require(SitePattern(name)), origin: try BaseURL(origin), settings: settings)
    }

    private func urls(_ site: Site, _ key: String) throws -> [String] {
        try #require(SiteOriginals(site)).urls(ofKey: key.bytes).map(\.text)
    }

    @Test("A site without rules has none")
    func none() throws {
        #expect(try SiteOriginals(site()) == nil)
    }

    @Test("The key of a response gives its originals, for http and https alike")
    func keys() throws {
        let site = try site("imgproxy")
        for end in ["", "#https"] {
            let key = "//img.test/s/w:300/plain/http://Photos.test/a.jpg@webp" + end
            #expect(try urls(site, key) == ["http://photos.test/a.jpg"])
        }
        #expect(try urls(site, "//img.test/other") == [])
        #expect(try urls(site, "//img.test") == [])
    }

    @Test("Each rule may give an original, and duplicates are removed")
    func several() throws {
        let site = try site("weserv", "thumbor", "/?url={url}&w={w} https://")
        #expect(
            try urls(site, "//img.test/?url=a.test/b&w=3") == [
                "http://a.test/b", "https://a.test/b",
            ])
        #expect(try urls(site, "//img.test/unsafe/9x9/a.test/b") == ["http://a.test/b"])
        let twice = try self.site("weserv", "/?url={url}&w={w} http://")
        #expect(try urls(twice, "//img.test/?url=a.test/b&w=3") == ["http://a.test/b"])
    }

    @Test("An original on the site's own origin also has the site's public URL")
    func own() throws {
        let site = try site(
            "nextjs", name: "www.test:80", origin: "http://10.0.0.7:9000/app", ignoring: ["utm_*"])
        #expect(
            try urls(site, "//www.test:80/_next/image?url=%2Fa.jpg%3Futm_x%3D1&w=64")
                == ["http://10.0.0.7:9000/app/a.jpg?utm_x=1", "//www.test/a.jpg"])
        #expect(
            try urls(site, "//www.test:80/_next/image?url=http%3A%2F%2F10.0.0.7%3A9000%2Fb&w=64")
                == ["http://10.0.0.7:9000/b"])
        let other = try self.site("nextjs", name: "*")
        #expect(
            try urls(other, "//any.test:81/_next/image?url=%2Fa.jpg&w=64")
                == ["http://10.0.0.7:9000/a.jpg", "//any.test:81/a.jpg"])
    }

    @Test("A purge of either URL of an original matches the response's tags")
    func reached() throws {
        let site = try site("nextjs", name: "www.test")
        let sites = SiteTable([site])
        let key = "//www.test/_next/image?url=%2F%7Ea.jpg&w=64".bytes
        let tags = EntryTags(key: key, urls: try #require(SiteOriginals(site)).urls(ofKey: key))
        let names = tags.tags.compactMap { URLName.name(inTag: $0).map(Array.init) }
        for url in ["https://www.test/~a.jpg", "http://10.0.0.7:9000/~a.jpg"] {
            let purged = try PurgeTarget.url(parsing: url.bytes).expanded(sites)
            #expect(names.contains { purged.contains(.url($0)) }, "\(url)")
        }
    }

    @Test("Equal rules have equal fingerprints, and a different effect gives another")
    func fingerprints() throws {
        let sites = try [
            site("imgproxy /a"), site("imgproxy", "thumbor"), site("thumbor", "imgproxy"),
            site("imgproxy /a", name: "*"), site("imgproxy /a", origin: "https://10.0.0.7:9000"),
            site("imgproxy /a", ignoring: ["x"]), site("imgproxy /a", "thumbor"),
        ]
        let prints = sites.map { SiteOriginals($0)?.fingerprint }
        #expect(Set(prints).count == sites.count)
        #expect(try SiteOriginals(site("  imgproxy   /a"))?.fingerprint == prints[0])
    }
}
