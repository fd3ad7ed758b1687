import Ground

/// A URL, or the beginning of some, that is to be purged.
struct PurgeURL {
    /// Host, path and query, canonical.
    let name: [UInt8]
    /// It is the beginning of URLs.
    let isPrefix: Bool

    /// All names of it, each once, the one that was written first.
    func names(_ sites: SiteTable) -> [[UInt8]] {
        var names = [name]
        func add(_ others: [[UInt8]]) {
            for name in others where !names.contains(name) { names.append(name) }
        }
        for key in keys {
            guard let url = OriginURL(canonical: key.span, at: 0..<key.count) else { continue }
            let site = sites.find(key.span, at: url.authority.range, isSecure: url.isSecure)
                .map { sites[$0] }
            // On the host of a named site every path is the site's.
            let isElse = site == nil || site?.pattern == .catchAll
            if isElse, !isPrefix, let image = imageName(url, key.span) {
                add([image])
            } else if let site {
                add(self.names(url, key, key[url.target.range], at: site))
            }
            for site in sites.sites where site.pattern != .catchAll {
                if let target = target(behind: site.origin) {
                    add(self.names(url, key, target, at: site))
                }
            }
        }
        return names
    }

    /// The canonical keys that have the name, for http and https: the scheme means nothing beyond
    /// its port.
    private var keys: [[UInt8]] {
        ["http://", "https://"].compactMap { scheme in
            let url = Array(scheme.utf8) + name
            var key: [UInt8] = []
            let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
            return result == .normalised && URLName.name(ofKey: key).elementsEqual(name) ? key : nil
        }
    }

    /// The name of the image that is asked for; nil if it is no URL of the image API.
    private func imageName(_ url: OriginURL, _ bytes: Span<UInt8>) -> [UInt8]? {
        let range = Self.unsigned(bytes, at: url.target.range)
        guard case .image(let url) = ImageTarget.parse(bytes, at: range) else { return nil }
        var key: [UInt8] = []
        let result = CacheKey.normalise(percentEncoded: bytes, at: url.range, into: &key)
        return result == .normalised ? Array(URLName.name(ofKey: key)) : nil
    }

    /// The target of a site whose answers come from `origin` that the origin has under the name;
    /// nil if there is none.
    private func target(behind origin: BaseURL) -> ArraySlice<UInt8>? {
        guard let base = Self.contains(of: origin) else { return nil }
        if name.starts(with: base), name[base.count...].first == UInt8(ascii: "/") {
            return name[base.count...]
        }
        guard isPrefix else { return nil }
        // A prefix that ends above the origin's own path covers all of the site; so does a host
        // without a port, which is a host on any.
        let start = name.last == Self.slash ? name.dropLast() : name[...]
        guard base.starts(with: start) else { return nil }
        let next = base.count > start.count ? base[start.count] : Self.slash
        let isHost = !start.contains(Self.slash)
        return next == Self.slash || isHost && next == UInt8(ascii: ":") ? [Self.slash] : nil
    }

    /// Without a slash at its end.
    private static func contains(of origin: BaseURL) -> [UInt8]? {
        let url = Array((origin.description + "/").utf8)
        var key: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
        return result == .normalised ? Array(URLName.name(ofKey: key).dropLast()) : nil
    }

    private static let slash = UInt8(ascii: "/")

    /// The names of what `site` answers to `target` at the host of `url`: there are two if the site
    /// names the port of a scheme, and none for what can have no key.
    private func names(
        _ url: OriginURL, _ key: [UInt8], _ target: ArraySlice<UInt8>, at site: Site
    ) -> [[UInt8]] {
        var target = Array(target)
        if site.settings.requiresSignature {
            target = target.span.copy(Self.unsigned(target.span, at: 0..<target.count))
        }
        var filtered: [UInt8] = []
        let filter = QueryFilter(ignoring: site.settings.ignoredQuery)
        if filter.filter(target.span, at: 0..<target.count, into: &filtered) { target = filtered }
        var siteKey: [UInt8] = []
        let isNamed = SiteKey.append(
            site, host: url.authority.range, in: key.span, path: 0..<target.count,
            of: target.span, isSecure: url.isSecure, to: &siteKey)
        guard isNamed else { return [] }
        let name = Array(URLName.name(ofKey: siteKey))
        return [URLName.canonical(ofKey: siteKey) ?? name, name]
    }

    /// The range without the parameters of a signature, which are in no key.
    private static func unsigned(_ bytes: Span<UInt8>, at range: Range<Int>) -> Range<Int> {
        guard case .signed(let signed) = SignedTarget.parse(bytes, at: range) else { return range }
        return signed.unsignedTarget.range
    }
}
