import Ground

/// The originals of one site's responses, according to its operator's rules.
package struct SiteOriginals: Sendable {
    /// The maximum number of rules of one site.
    package static let rulesMax = 8

    private let rules: [OriginalRule]
    private let origin: BaseURL
    private let filter: QueryFilter
    /// The name of the origin's base URL without a slash at its end; `nil` if it has no canonical
    /// form.
    private let base: [UInt8]?
    /// A hash of everything that determines the originals of a response: equal values name the same
    /// originals.
    package let fingerprint: UInt64

    /// Creates the rules of a site; `nil` for a site without rules.
    package init?(_ site: Site) {
        guard !site.settings.originals.isEmpty else { return nil }
        rules = site.settings.originals
        origin = site.origin
        filter = QueryFilter(ignoring: site.settings.ignoredQuery)
        base = URLName.canonical(ofURL: Array("\(site.origin)/".utf8)).map { $0.dropLast() }
        let said =
            ["\(Self.version)", site.name, "\(site.origin)"] + rules.map(\.description) + [""]
            + site.settings.ignoredQuery
        // None of these texts holds a line feed.
        fingerprint = XXH64.hash(Array(said.joined(separator: "\n").utf8).span, seed: 0)
    }

    /// The version of the rules' meaning; increment it when rules come to name other originals.
    private static let version = 1

    /// Returns the distinct URLs of the originals of the response stored under `key`, as canonical
    /// keys.
    ///
    /// An original below the site's own origin is also listed under the URL by which the site's
    /// clients know it, which begins with `//`.
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

    /// Returns the URL at the site's `host` whose response comes from `original`; `nil` if there is
    /// none.
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
    /// Returns the name of a URL in canonical spelling; `nil` if it has none.
    fileprivate static func canonical(ofURL url: [UInt8]) -> [UInt8]? {
        var key: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
        return result == .normalised ? Array(name(ofKey: key)) : nil
    }
}
