import Ground

/// What is put before the name of an original that has no scheme.
struct OriginalBase: Hashable, Sendable {
    /// `http://` or `https://` alone, behind which the name's host goes, or a canonical URL without
    /// a query.
    private let text: [UInt8]

    static let http = OriginalBase(text: Array("http://".utf8))
    static let https = OriginalBase(text: Array("https://".utf8))

    private init(text: [UInt8]) {
        self.text = text
    }

    /// The origin of a site: a name is then a path of the site's, as its clients write it.
    init(_ origin: BaseURL) {
        text = Array(origin.description.utf8)
    }

    /// The base that an operator wrote; nil if it is no URL of http, or one with a query or a
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

    /// `name` behind this base, with one slash between them; nil if it is empty, or begins with two
    /// slashes where a host is already given, which might mean another host.
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
    /// As it can be written, in canonical form.
    var description: String { String(decoding: text, as: UTF8.self) }
}
