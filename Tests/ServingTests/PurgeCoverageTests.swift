import Ground
import HTTPRules
import Testing
import Tiers
import Trials

/// The path from the target in a purge request to the entries that it invalidates.
@Suite("What a purge covers")
struct PurgeCoverageTests {
    /// A stored response and the URLs by which it can be purged.
    private struct Entry {
        var key: [UInt8]
        var tags: [[UInt8]]
        var urls: [String]
    }

    private func marks(_ target: PurgeTarget, _ sites: SiteTable) -> MarkTable {
        MarkTable(
            target.expanded(sites).map {
                InvalidationMark(
                    $0, isSoft: false, version: InvalidationVersion(epoch: 1, count: 1))
            })
    }

    private func isDead(_ entry: Entry, _ marks: MarkTable) -> Bool {
        marks.effect(on: entry.key, tags: entry.tags, version: .zero) == .purged
    }

    private func sites() throws -> SiteTable {
        var settings = SiteSettings()
        settings.ignoredQuery = ["utm_*"]
        let named = Site(
            try #require(SitePattern("www.test")), origin: try BaseURL("http://o.test:9000/www"),
            settings: settings)
        let other = Site(.catchAll, origin: try BaseURL("https://o.test/all"))
        return SiteTable([named, other])
    }

    private func path(_ dice: inout SplitMix64) -> String {
        let segments = (0..<Int.random(in: 1...4, using: &dice)).map { _ in
            ["a", "b", "%7Ec", "d%2fe", "", "f.jpg"][Int.random(in: 0..<6, using: &dice)]
        }
        return "/" + segments.joined(separator: "/")
    }

    /// A random site's response to a client's request, made from an original on another host.
    private func entry(_ sites: SiteTable, _ dice: inout SplitMix64) -> Entry {
        let isNamed = Bool.random(using: &dice)
        let isSecure = Bool.random(using: &dice)
        let host = (isNamed ? "WWW.test" : "other.test") + (Bool.random(using: &dice) ? ":81" : "")
        let path = path(&dice)
        let query = Bool.random(using: &dice) ? "?w=1" : ""
        let target = path + query
        let site = isNamed ? sites[0] : sites[1]
        var key: [UInt8] = []
        _ = SiteKey.append(
            site, host: 0..<host.utf8.count, in: Array(host.utf8).span,
            path: 0..<target.utf8.count, of: Array(target.utf8).span, isSecure: isSecure, to: &key)
        let origin = "\(site.origin)\(target)"
        let original = "https://img.test\(self.path(&dice))"
        let made = (isNamed ? [original] : [original, origin]).map { url in
            var canonical: [UInt8] = []
            let url = Array(url.utf8)
            _ = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &canonical)
            return canonical
        }
        let tags = EntryTags(key: key, urls: made).tags
        if Bool.random(using: &dice) { key += Array("\nwebp /#x".utf8) }
        let utm = isNamed ? (query.isEmpty ? "?" : query + "&") + "utm_source=x" : query
        return Entry(
            key: key, tags: tags,
            urls: [
                "http://\(host)\(target)", "https://\(host)\(path)\(utm)", origin, original,
            ])
    }

    @Test(
        "An entry is purged by each of its URLs and by every prefix of them",
        arguments: Trials.seeds(0...3))
    func reaches(seed: UInt64) throws {
        var dice = SplitMix64(seed: 8_100 + seed)
        let sites = try sites()
        for _ in 0..<500 {
            let entry = entry(sites, &dice)
            for url in entry.urls {
                let target = try PurgeTarget.url(parsing: Array(url.utf8))
                #expect(isDead(entry, marks(target, sites)), "\(url): \(entry)")
                let path = url.prefix { $0 != "?" }
                let slashes = path.indices.filter { path[$0] == "/" }.dropFirst(2)
                for end in slashes + [path.endIndex] {
                    let prefix = try PurgeTarget.prefix(parsing: Array(path[..<end].utf8))
                    #expect(isDead(entry, marks(prefix, sites)), "\(path[..<end]): \(entry)")
                }
            }
        }
    }

    @Test("Other URLs, prefixes and tags do not purge an entry", arguments: Trials.seeds(0...3))
    func spares(seed: UInt64) throws {
        var dice = SplitMix64(seed: 8_200 + seed)
        let sites = try sites()
        for _ in 0..<500 {
            let entry = entry(sites, &dice)
            for url in entry.urls {
                let path = url.prefix { $0 != "?" }
                let longer = try PurgeTarget.url(parsing: Array("\(path)x".utf8))
                #expect(!isDead(entry, marks(longer, sites)), "\(path)x: \(entry)")
                let below = try PurgeTarget.prefix(parsing: Array("\(path)x".utf8))
                #expect(!isDead(entry, marks(below, sites)), "\(path)x: \(entry)")
            }
            for text in ["img.tes", "ww.test", "test", "o.test:9000/ww", "o.test/al"] {
                let prefix = try PurgeTarget.prefix(parsing: Array(text.utf8))
                #expect(!isDead(entry, marks(prefix, sites)), "\(text): \(entry)")
            }
            for tag in entry.tags {
                let text = Array(tag.dropFirst())
                let target = try PurgeTarget.tag(parsing: text)
                #expect(!isDead(entry, marks(target, sites)), "a URL is not a tag: \(entry)")
            }
        }
    }
}
