import Ground

/// The reference to an original in a transformed URL, with its escapes decoded: a URL, or a name
/// without a scheme.
struct OriginalReference: Hashable {
    /// The decoded reference.
    var text: [UInt8]
    /// The base of a name without a scheme, unless the operator gave another; `nil` if such a name
    /// is invalid.
    var base: OriginalBase?

    /// Returns the key of the original's URL (``CacheKey``); `nil` if it cannot be fetched over
    /// http.
    ///
    /// - Parameters:
    ///   - other: the operator's base, which takes precedence; `nil` for none.
    ///   - bytesMax: the maximum length of the key in bytes.
    /// - Returns: the bytes of the key; `nil` if the URL is relative without a base, not fetchable
    ///   over http, or too long.
    func key(against other: OriginalBase?, bytesMax: Int) -> [UInt8]? {
        guard let url = absolute(against: other ?? base) else { return nil }
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: bytesMax)
        return made == .normalised ? key : nil
    }

    /// Returns the URL, or a name joined with `base`; `nil` for a scheme other than http and https,
    /// or a name that cannot be joined.
    private func absolute(against base: OriginalBase?) -> [UInt8]? {
        guard let rest = schemeEnd else { return base?.joined(with: text) }
        guard Self.isURL(text) else { return nil }
        if text[rest...].starts(with: "//".utf8) { return text }
        // Intermediate proxies merge two slashes into one; such a URL still has a host (URL
        // Standard).
        return text[..<rest] + [UInt8(ascii: "/")] + text[rest...]
    }

    /// The end of the scheme and its colon; `nil` for a name.
    ///
    /// `http:` and `https:` count before any slash, other schemes only before two. A name may
    /// contain a colon, too, as in `example.org:8080/a`.
    private var schemeEnd: Int? {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), RedirectTarget.hasScheme(text)
        else { return nil }
        let rest = text[(colon + 1)...]
        return rest.starts(with: Self.isURL(text) ? "/".utf8 : "//".utf8) ? colon + 1 : nil
    }

    /// Returns true if `text` begins with `http:` or `https:`.
    static func isURL(_ text: [UInt8]) -> Bool {
        let start = text.prefix(6).map(ASCII.lowercased)
        return start.starts(with: "http:".utf8) || start.starts(with: "https:".utf8)
    }
}

/// The prefix for the name of an original that has no scheme.
struct OriginalBase: Hashable, Sendable {
    /// Either `http://` or `https://` alone, for names that begin with a host, or a canonical URL
    /// without a query.
    private let text: [UInt8]

    static let http = OriginalBase(text: Array("http://".utf8))
    static let https = OriginalBase(text: Array("https://".utf8))

    private init(text: [UInt8]) {
        self.text = text
    }

    /// Creates the base for the paths of a site, as its clients write them, from its origin.
    init(_ origin: BaseURL) {
        text = Array(origin.description.utf8)
    }

    /// Creates the base that an operator wrote; `nil` if it is not an http URL, or has a query or
    /// fragment.
    init?(_ written: ArraySlice<UInt8>) {
        let lower = written.prefix(9).map(ASCII.lowercased)
        if lower == Self.http.text || lower == Self.https.text {
            text = lower
            return
        }
        let bytes = Array(written)
        var canonical: [UInt8] = []
        guard !bytes.contains(UInt8(ascii: "#")), !bytes.contains(UInt8(ascii: "?")),
            CacheKey.normalise(url: bytes.span, at: 0..<bytes.count, into: &canonical)
                == .normalised
        else { return nil }
        text = canonical
    }

    /// Returns the base and `name` joined with one slash.
    ///
    /// Returns `nil` if `name` is empty, or begins with two slashes although the base has a host,
    /// because it might name another host.
    func joined(with name: [UInt8]) -> [UInt8]? {
        guard !name.isEmpty else { return nil }
        if self == .http || self == .https {
            return text + name.drop { $0 == UInt8(ascii: "/") }
        }
        guard !name.starts(with: "//".utf8) else { return nil }
        let start = text.last == UInt8(ascii: "/") ? text.dropLast() : text[...]
        let isRooted = name.first == UInt8(ascii: "/")
        return start + (isRooted ? [] : [UInt8(ascii: "/")]) + name
    }
}

extension OriginalBase: CustomStringConvertible {
    /// The base in canonical form, as an operator may write it.
    var description: String { String(decoding: text, as: UTF8.self) }
}

/// The URLs of the image optimiser of Next.js ("Image component"): `/_next/image?url=URL&w=…&q=…`.
enum NextImageTarget {
    /// Returns the value of the only `url`: a path of the site, or an absolute URL; `nil` for any
    /// other target.
    ///
    /// The optimiser rejects everything else, including two of them and a URL without a scheme.
    static func reference(_ target: SplitTarget, of origin: BaseURL) -> OriginalReference? {
        guard
            target.path.elementsEqual("/_next/image".utf8)
                || target.path.elementsEqual("/_next/image/".utf8)
        else { return nil }
        let values = target.parameters.filter { $0.name.elementsEqual("url".utf8) }
        guard values.count == 1,
            let url = PercentEncoding.decoded(values[0].value, plusIsSpace: true),
            !url.starts(with: "//".utf8)
        else { return nil }
        let isPath = url.first == UInt8(ascii: "/")
        guard isPath || OriginalReference.isURL(url) else { return nil }
        return OriginalReference(text: url, base: isPath ? OriginalBase(origin) : nil)
    }
}

/// The URLs of wsrv.nl, formerly images.weserv.nl ("Quick reference"): `/?url=URL&w=…`.
enum WeservTarget {
    /// Returns the value of the first `url`; `nil` if the target is not `/?…` or has none.
    ///
    /// A value without a scheme is an http URL; one that begins with `ssl:` or two slashes is an
    /// https URL.
    static func reference(_ target: SplitTarget) -> OriginalReference? {
        guard target.path.isEmpty || target.path.elementsEqual("/".utf8),
            let parameter = target.parameters.first(where: isURL),
            let url = PercentEncoding.decoded(parameter.value)
        else { return nil }
        for start in ["ssl:", "//"] {
            guard url.prefix(start.utf8.count).map(ASCII.lowercased).elementsEqual(start.utf8)
            else { continue }
            let name = url.dropFirst(start.utf8.count)
            return OriginalBase.https.joined(with: Array(name)).map {
                OriginalReference(text: $0, base: nil)
            }
        }
        return OriginalReference(text: url, base: .http)
    }

    /// Returns true for the parameter `url` in any case, as the service does.
    private static func isURL(_ parameter: SplitTarget.Parameter) -> Bool {
        parameter.name.map(ASCII.lowercased).elementsEqual("url".utf8)
    }
}
