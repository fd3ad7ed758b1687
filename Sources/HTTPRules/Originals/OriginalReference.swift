import Ground

/// What a transformed URL says of its original, with its escapes undone: a URL, or a name without a
/// scheme.
struct OriginalReference: Hashable {
    var text: [UInt8]
    /// A name without a scheme goes behind this, unless the operator gave another base; nil if such
    /// a name means nothing.
    var base: OriginalBase?

    /// The key of the original's URL, as ``CacheKey`` makes it; nil if it names nothing that can be
    /// fetched over http.
    func key(against other: OriginalBase?, bytesMax: Int) -> [UInt8]? {
        guard let url = absolute(against: other ?? base) else { return nil }
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: bytesMax)
        return made == .normalised ? key : nil
    }

    private func absolute(against base: OriginalBase?) -> [UInt8]? {
        guard let rest = schemeEnd else { return base?.joined(with: text) }
        guard Self.isURL(text) else { return nil }
        if text[rest...].starts(with: "//".utf8) { return text }
        // Proxies on the way make one slash of two; such a URL still means a host (URL Standard).
        return text[..<rest] + [UInt8(ascii: "/")] + text[rest...]
    }

    /// Where the scheme and its colon end: those of http before any slash, others before two; nil
    /// for a name, which may have a colon, too, as in `example.org:8080/a`.
    private var schemeEnd: Int? {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), RedirectTarget.hasScheme(text)
        else { return nil }
        let rest = text[(colon + 1)...]
        return rest.starts(with: Self.isURL(text) ? "/".utf8 : "//".utf8) ? colon + 1 : nil
    }

    /// True if `text` begins with `http:` or `https:`.
    static func isURL(_ text: [UInt8]) -> Bool {
        let start = text.prefix(6).map(ASCII.lowercased)
        return start.starts(with: "http:".utf8) || start.starts(with: "https:".utf8)
    }
}
