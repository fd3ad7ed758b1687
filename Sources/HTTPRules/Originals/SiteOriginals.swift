import Ground

/// What the answers of one site are made from, as the rules say that its operator has given.
package struct SiteOriginals: Sendable {
    /// Rules of one site at most.
    package static let rulesMax = 8

    private let rules: [OriginalRule]
    private let origin: BaseURL
    private let filter: QueryFilter
    /// The name of the origin's base without a slash at its end; nil if that has no canonical form.
    private let base: [UInt8]?
    /// Of all that says which originals an answer has: equal ones name the same.
    package let fingerprint: UInt64

    /// Nil for a site without rules.
    package init?(_ site: Site) {
        guard !site.settings.originals.isEmpty else { return nil }
        rules = site.settings.originals
        origin = site.origin
        filter = QueryFilter(ignoring: site.settings.ignoredQuery)
        base = URLName.canonical(ofURL: Array("\(site.origin)/".utf8)).map { $0.dropLast() }
        let said =
            ["\(Self.version)", site.name, "\(site.origin)"] + rules.map(\.description) + [""]
            + site.settings.ignoredQuery
        // No text of these holds a line feed.
        fingerprint = XXH64.hash(Array(said.joined(separator: "\n").utf8).span, seed: 0)
    }

    /// To be raised when rules come to mean something else.
    private static let version = 1

    /// The URLs of the originals of what the site answers under `key`, as canonical keys, each
    /// once.
    ///
    /// One that lies behind the site's own origin has the URL that the site's clients know it by,
    /// too.
    package func urls(ofKey key: [UInt8]) -> [[UInt8]] {
        let name = URLName.name(ofKey: key)
        let slash = name.firstIndex(of: UInt8(ascii: "/")) ?? name.endIndex
        let (host, target) = (name[..<slash], Array(name[slash...]))
        var urls: [[UInt8]] = []
        for rule in rules {
            let original = rule.original(of: target.span, at: 0..<target.count, origin: origin)
            guard let original else { continue }
            let own = siteURL(original, at: host)
            for url in [original] + (own.map { [$0] } ?? []) where !urls.contains(url) {
                urls.append(url)
            }
        }
        return urls
    }

    /// The URL at the site's `host` whose answer comes from `original`; nil if there is none.
    private func siteURL(_ original: [UInt8], at host: ArraySlice<UInt8>) -> [UInt8]? {
        let name = URLName.name(ofKey: original)
        guard let base, name.starts(with: base) else { return nil }
        var target = Array(name.dropFirst(base.count))
        guard target.first == UInt8(ascii: "/") else { return nil }
        var filtered: [UInt8] = []
        if filter.filter(target.span, at: 0..<target.count, into: &filtered) { target = filtered }
        let own = Array("//".utf8) + host + target
        return URLName.canonical(ofKey: own).map { Array("//".utf8) + $0 }
    }
}

extension URLName {
    /// The name of a URL in its canonical spelling; nil if it has none.
    fileprivate static func canonical(ofURL url: [UInt8]) -> [UInt8]? {
        var key: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
        return result == .normalised ? Array(name(ofKey: key)) : nil
    }
}
