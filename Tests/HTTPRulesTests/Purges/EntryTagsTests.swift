import Ground
import HTTPRules
import Testing
import Trials

@Suite("Tags of an entry")
struct EntryTagsTests {
    private func tags(_ key: String, urls: String..., response: CacheTags = CacheTags()) -> [String]
    {
        EntryTags(key: key.bytes, cacheTags: response, urls: urls.map(\.bytes)).tags.map { tag in
            URLName.name(inTag: tag).map { "URL " + Array($0).text } ?? tag.text
        }
    }

    @Test("An entry has a tag for each URL from which it was made")
    func urls() {
        #expect(tags("http://a.test/x") == [])
        #expect(
            tags("http://a.test/x", urls: "https://cdn.test/1/x") == ["URL cdn.test/1/x"])
        #expect(
            tags("http://a.test/x", urls: "https://a.test/x", "http://b.test/y", "https://b.test/y")
                == ["URL b.test/y"])
    }

    @Test("A site's response has a tag for the canonical form of its URL")
    func canonical() {
        #expect(tags("//w.test/a?b#https") == [])
        #expect(tags("//w.test/%7Ea%2fb?c#https") == ["URL w.test/~a%2Fb?c"])
        #expect(tags("//w.test:80/a") == ["URL w.test/a"])
        #expect(tags("//w.test:443/a#https") == ["URL w.test/a"])
        #expect(tags("//w.test:80/a#https") == [])
        // A host that is not a DNS name has no canonical URL.
        #expect(tags("//1.2.3/a") == [])
    }

    @Test("A variant has the names of its URL")
    func variants() {
        for (key, name) in [
            ("http://a.test/x?#\nwebp", "a.test/x?"), ("//w.test/a#https\nx#/y//z", "w.test/a"),
            ("//w.test/a\nx#https", "w.test/a"), ("https://a.test/x//y", "a.test/x//y"),
        ] {
            #expect(Array(URLName.name(ofKey: key.bytes)).text == name)
        }
        #expect(tags("//w.test:443/a#https\nwebp#/") == ["URL w.test/a"])
    }

    @Test("The keys of a name have that name")
    func keys() {
        let keys = URLName.keys(of: "a.test/x".bytes)
        #expect(
            keys.map(\.text)
                == ["http://a.test/x", "https://a.test/x", "//a.test/x", "//a.test/x#https"])
        #expect(keys.allSatisfy { Array(URLName.name(ofKey: $0)).text == "a.test/x" })
    }

    @Test("Names of URLs come first, and tags beyond the limit are dropped and counted")
    func limits() {
        let many = (0..<1000).map { "t\($0)" }.joined(separator: " ")
        let response = CacheTags(ResponseHead(200, "Surrogate-Key: \(many)"))
        let entry = EntryTags(
            key: "http://a.test/x".bytes, cacheTags: response, urls: ["http://b.test/y".bytes])
        #expect(entry.tags.count == 1000 && entry.droppedCount == 1)
        #expect(entry.tags[0] == URLName.tag("b.test/y".bytes[...]))
        #expect(entry.tags[999] == "t998".bytes)
    }

    @Test("An origin cannot forge a URL as a tag")
    func forged() {
        let forged = CacheTags(ResponseHead(200, "xkey: good \0victim.test/x"))
        let entry = EntryTags(key: "http://a.test/x".bytes, cacheTags: forged)
        #expect(entry.tags == ["good".bytes] && entry.droppedCount == 1)
    }

    @Test("The name of a purged URL is in its entry's key or tags")
    func found() throws {
        let pattern = try #require(SitePattern("w.test"))
        var settings = SiteSettings()
        settings.ignoredQuery = ["u"]
        let site = Site(pattern, origin: try BaseURL("http://10.0.0.7:9000"), settings: settings)
        let sites = SiteTable([site])
        var dice = SplitMix64(seed: 8_001)
        let paths = "ab/.%~-"
        for _ in 0..<Trials.count(2_000) {
            let isSecure = Bool.random(using: &dice)
            let port = ["", ":80", ":443", ":8080"][Int.random(in: 0..<4, using: &dice)]
            var path = "/" + dice.text(of: paths, upTo: 6).replacing("%", with: "%7e")
            if Bool.random(using: &dice) { path += "?b=%41" }
            let host = "W.test\(port)"
            var key: [UInt8] = []
            let isMade = SiteKey.append(
                site, host: 0..<host.utf8.count, in: host.bytes.span, path: 0..<path.utf8.count,
                of: path.bytes.span, isSecure: isSecure, to: &key)
            #expect(isMade)
            let has =
                [Array(URLName.name(ofKey: key))]
                + EntryTags(key: key).tags.compactMap { URLName.name(inTag: $0).map(Array.init) }
            let url = (Bool.random(using: &dice) ? "https://" : "http://") + host + path
            let names = try PurgeTarget.url(parsing: url.bytes).expanded(sites)
            #expect(names.contains { name in has.contains { name == .url($0) } }, "\(url)")
        }
    }
}
