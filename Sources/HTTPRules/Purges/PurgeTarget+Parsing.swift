package import Ground

/// Purge targets as clients write them, validated and in canonical form.
extension PurgeTarget {
    /// Returns the target for one URL.
    ///
    /// - Parameters:
    ///   - text: `https://…`, `http://…` or `//…`; the scheme only determines the default port.
    ///   - bytesMax: the maximum length of the canonical URL in bytes.
    /// - Returns: the target with the canonical URL.
    /// - Throws: ``PurgeTargetFault`` if no URL can have this name.
    package static func url(
        parsing text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        .url(try canonicalName(of: text, bytesMax: bytesMax))
    }

    /// Returns the target for all URLs that begin with `text`.
    ///
    /// - Parameters:
    ///   - text: `https://HOST[:PORT][/PATH]`; scheme and slashes are optional, and `/` or no path
    ///     means the whole host.
    ///   - bytesMax: the maximum length of the canonical URL in bytes.
    /// - Returns: the target with the canonical prefix.
    /// - Throws: ``PurgeTargetFault`` if no URL can have this name.
    package static func prefix(
        parsing text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        guard !text.isEmpty else { throw .url(.empty) }
        guard !text.contains(UInt8(ascii: "?")), !text.contains(UInt8(ascii: "#")) else {
            throw .prefixQuery
        }
        let slash = text.firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
        let isURL = text[slash...].starts(with: "//".utf8)
        let url = isURL ? text : Array("//".utf8) + text
        return prefix(named: try canonicalName(of: url, bytesMax: bytesMax)[...])
    }

    /// Returns the target for all responses with the tag `text`.
    ///
    /// - Throws: ``PurgeTargetFault`` if no response can have this tag.
    package static func tag(parsing text: [UInt8]) throws(PurgeTargetFault) -> PurgeTarget {
        guard let first = text.first, let last = text.last else { throw .tagEmpty }
        guard text.count <= CacheTags.tagBytesMax else { throw .tagTooLong }
        let isHeld = text.allSatisfy { $0 >= 0x20 && $0 != 0x7F || ASCII.isWhitespace($0) }
        guard isHeld else { throw .tagControl }
        guard !ASCII.isWhitespace(first), !ASCII.isWhitespace(last) else {
            throw .tagWhitespace
        }
        return .tag(text)
    }

    /// Returns the target for all URLs that begin with `name`, a host and a path.
    private static func prefix(named name: ArraySlice<UInt8>) -> PurgeTarget {
        let slash = name.firstIndex(of: UInt8(ascii: "/")) ?? name.endIndex
        let path = name[slash...]
        return .prefix(host: Array(name[..<slash]), path: path.count > 1 ? Array(path) : [])
    }

    /// Returns the canonical name of the URL `text`, whose scheme may be missing before `//`.
    private static func canonicalName(
        of text: [UInt8], bytesMax: Int
    ) throws(PurgeTargetFault) -> [UInt8] {
        let url = text.starts(with: "//".utf8) ? Array("http:".utf8) + text : text
        var key: [UInt8] = []
        let result = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: bytesMax)
        if case .refused(let refusal) = result { throw .url(refusal) }
        return Array(URLName.name(ofKey: key))
    }

    // MARK: Names under which sites store responses

    /// Returns the target as written, followed by the other names under which this node stores or
    /// fetches the responses for that URL.
    ///
    /// An image is stored under its own URL, regardless of the host whose `/v1/image` was
    /// requested. A site's response is stored under the site's name, without the ignored query
    /// parameters; one of `*` is stored under the client's host, and therefore has the origin's URL
    /// as a tag (``EntryTags``).
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        switch self {
        case .everything, .tag: [self]
        case .url(let name):
            PurgeURL(name: name, isPrefix: false).names(sites).map(PurgeTarget.url)
        case .prefix(let host, let path):
            PurgeURL(name: host + (path.isEmpty ? [UInt8(ascii: "/")] : path), isPrefix: true)
                .names(sites).map { Self.prefix(named: $0[...]) }
        }
    }
}

extension [PurgeTarget] {
    /// Returns the targets that ``PurgeTarget/expanded(_:)`` returns for each of these, without
    /// duplicates, in order.
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        var seen: Set<PurgeTarget> = []
        return flatMap { $0.expanded(sites) }.filter { seen.insert($0).inserted }
    }
}

/// The reason why a target is invalid: no URL or tag can have this name.
package enum PurgeTargetFault: Error, Hashable, Sendable {
    case url(URLRefusal)
    /// A prefix has a query or a fragment.
    case prefixQuery
    case tagEmpty
    case tagTooLong
    /// The tag holds a control byte, which no field value can hold.
    case tagControl
    /// The tag begins or ends with white space, which is not part of any tag.
    case tagWhitespace

    /// The fault and the allowed values.
    package var message: String {
        switch self {
        case .url(let refusal): refusal.message
        case .prefixQuery:
            "A prefix is a host, or a host and a path that ends at a slash or at a segment's end, "
                + "without query and fragment."
        case .tagEmpty: "The tag is empty; 1 to \(CacheTags.tagBytesMax) bytes are allowed."
        case .tagTooLong:
            "The tag is longer than \(CacheTags.tagBytesMax) bytes."
        case .tagControl: "The tag has a control character, which no response's tag can have."
        case .tagWhitespace:
            "The tag begins or ends with white space, which is not part of a tag; each target has "
                + "one tag."
        }
    }
}

/// A URL, or a prefix of URLs, to purge.
struct PurgeURL {
    /// The host, path and query in canonical form.
    let name: [UInt8]
    /// True for a prefix of URLs.
    let isPrefix: Bool

    /// Returns all distinct names of the URL, the one written first.
    func names(_ sites: SiteTable) -> [[UInt8]] {
        var names = [name]
        func add(_ others: [[UInt8]]) {
            for name in others where !names.contains(name) { names.append(name) }
        }
        for key in keys {
            guard let url = OriginURL(canonical: key.span, at: 0..<key.count) else { continue }
            let site = sites.find(key.span, at: url.authority.range, isSecure: url.isSecure)
                .map { sites[$0] }
            // On the host of a named site every path belongs to the site.
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

    /// The canonical keys for http and https that have this name; the scheme only determines the
    /// default port.
    private var keys: [[UInt8]] {
        ["http://", "https://"].compactMap { scheme in
            let url = Array(scheme.utf8) + name
            var key: [UInt8] = []
            let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
            return result == .normalised && URLName.name(ofKey: key).elementsEqual(name) ? key : nil
        }
    }

    /// Returns the name of the requested image; `nil` if the URL is not one of the image API.
    private func imageName(_ url: OriginURL, _ bytes: Span<UInt8>) -> [UInt8]? {
        let range = Self.unsigned(bytes, at: url.target.range)
        guard case .image(let url) = ImageTarget.parse(bytes, at: range) else { return nil }
        var key: [UInt8] = []
        let result = CacheKey.normalise(percentEncoded: bytes, at: url.range, into: &key)
        return result == .normalised ? Array(URLName.name(ofKey: key)) : nil
    }

    /// Returns the target at a site with this origin that the origin serves under the name; `nil`
    /// if there is none.
    private func target(behind origin: BaseURL) -> ArraySlice<UInt8>? {
        guard let base = Self.canonicalName(of: origin) else { return nil }
        if name.starts(with: base), name[base.count...].first == UInt8(ascii: "/") {
            return name[base.count...]
        }
        guard isPrefix else { return nil }
        // A prefix that ends above the origin's base path covers the whole site; so does a host
        // without a port, which matches any port.
        let start = name.last == Self.slash ? name.dropLast() : name[...]
        guard base.starts(with: start) else { return nil }
        let next = base.count > start.count ? base[start.count] : Self.slash
        let isHost = !start.contains(Self.slash)
        return next == Self.slash || isHost && next == UInt8(ascii: ":") ? [Self.slash] : nil
    }

    /// Returns the canonical name of the base URL, without a slash at its end; `nil` if it has no
    /// canonical form.
    private static func canonicalName(of origin: BaseURL) -> [UInt8]? {
        let url = Array((origin.description + "/").utf8)
        var key: [UInt8] = []
        let result = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &key)
        return result == .normalised ? Array(URLName.name(ofKey: key).dropLast()) : nil
    }

    private static let slash = UInt8(ascii: "/")

    /// Returns the names of what `site` serves for `target` at the host of `url`.
    ///
    /// Two, which differ only if the site names a scheme's default port; none if the target can
    /// have no key.
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

    /// Returns the range without the parameters of a signature, which are in no key.
    private static func unsigned(_ bytes: Span<UInt8>, at range: Range<Int>) -> Range<Int> {
        guard case .signed(let signed) = SignedTarget.parse(bytes, at: range) else { return range }
        return signed.unsignedTarget.range
    }
}

extension URLName {
    /// Returns the name of `key` in the canonical spelling of ``CacheKey``; `nil` if it has none,
    /// as with a host that is not a DNS name.
    ///
    /// A site's responses are stored under the target as received, byte by byte; a purge may spell
    /// the same URL differently (RFC 3986 §6.2.2).
    package static func canonical(
        ofKey key: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) -> [UInt8]? {
        let name = name(ofKey: key)
        guard key.starts(with: "//".utf8) else { return Array(name) }
        let isSecure = name.endIndex < key.endIndex && key[name.endIndex] == UInt8(ascii: "#")
        let url = Array(isSecure ? "https://".utf8 : "http://".utf8) + name
        var canonical: [UInt8] = []
        let result = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &canonical, bytesMax: bytesMax)
        return result == .normalised ? Array(self.name(ofKey: canonical)) : nil
    }
}
