/// The URLs listed in a sitemap (sitemaps.org protocol 0.9, with Google's image extension).
///
/// The XML is scanned for elements, not fully parsed: entities of the document's own, attributes
/// and validation are not needed, and the sitemap may come from an untrusted host.
package struct Sitemap: Hashable, Sendable {
    /// The URLs of images, in order, without duplicates.
    package private(set) var images: [String] = []
    /// The URLs of further sitemaps; only an index has them.
    package private(set) var sitemaps: [String] = []
    /// True if the sitemap lists more URLs than are kept.
    package private(set) var isTruncated = false
    /// The number of listed names that are not absolute URLs, or too long.
    package private(set) var rejectedCount = 0

    /// The reason why a sitemap is rejected.
    package enum FormatError: Error, Hashable, Sendable {
        /// The text is neither a `urlset` nor a `sitemapindex`, nor a list of URLs.
        case notSitemap
        /// An element or a comment is not closed.
        case truncated
        /// The text is compressed with gzip.
        case compressed
    }

    /// The maximum number of sitemaps taken from an index; the others are ignored.
    package static let sitemapsMax = 100
    /// The maximum size of one sitemap in bytes; the protocol allows 50 MiB.
    package static let bytesMax = 10 << 20

    /// Parses XML, or one URL per line; keeps at most `imagesMax` images.
    package init(_ bytes: [UInt8], imagesMax: Int) throws(FormatError) {
        if bytes.starts(with: [0x1F, 0x8B]) { throw .compressed }
        let text = bytes.drop { $0 <= 0x20 || Self.byteOrderMark.contains($0) }
        var known: Set<String> = []
        guard text.first == UInt8(ascii: "<") else {
            try readLines(text, imagesMax, &known)
            return
        }
        var scan = XMLScanner(text)
        var path: [[UInt8]] = []
        while let event = try scan.next() {
            switch event {
            case .elementStart(let name):
                if path.isEmpty, name != Self.urlset, name != Self.index { throw .notSitemap }
                guard path.count < Self.depthMax else { throw .notSitemap }
                path.append(name)
            case .elementEnd: _ = path.popLast()
            case .text(let value):
                guard path.count >= 3, path.last == Self.loc else { continue }
                addLocation(value, in: path[path.count - 2], of: path[0], imagesMax, &known)
            }
        }
        guard path.isEmpty else { throw .truncated }
    }

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    private static let urlset = Array("urlset".utf8)
    private static let index = Array("sitemapindex".utf8)
    private static let image = Array("image".utf8)
    private static let loc = Array("loc".utf8)
    private static let depthMax = 16

    /// Adds the URL of a `loc` element in `parent`: a sitemap if the document is an index, else an
    /// image; pages are skipped.
    private mutating func addLocation(
        _ value: String, in parent: [UInt8], of root: [UInt8], _ imagesMax: Int,
        _ known: inout Set<String>
    ) {
        guard Self.isURL(value) else { return rejectedCount += 1 }
        guard root == Self.urlset else {
            guard sitemaps.count < Self.sitemapsMax else { return isTruncated = true }
            if known.insert(value).inserted { sitemaps.append(value) }
            return
        }
        // Pages are skipped, but some sitemaps list images as pages.
        guard parent == Self.image || Self.isImage(value) else { return }
        add(value, imagesMax, &known)
    }

    /// Adds an image unless it is known; at `imagesMax` the sitemap is marked as truncated instead.
    private mutating func add(_ url: String, _ imagesMax: Int, _ known: inout Set<String>) {
        guard !known.contains(url) else { return }
        guard images.count < imagesMax else { return isTruncated = true }
        known.insert(url)
        images.append(url)
    }

    /// Reads a text with one URL per line; a line that is not an absolute URL, or no URL at all,
    /// makes it no sitemap.
    private mutating func readLines(
        _ text: ArraySlice<UInt8>, _ imagesMax: Int, _ known: inout Set<String>
    ) throws(FormatError) {
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let url = String(decoding: line.trimmed, as: UTF8.self)
            if url.isEmpty { continue }
            guard PrefetchRequest.isAbsolute(url) else { throw .notSitemap }
            guard Self.isURL(url) else {
                rejectedCount += 1
                continue
            }
            add(url, imagesMax, &known)
        }
        guard !images.isEmpty else { throw .notSitemap }
    }

    /// Returns true for an absolute URL that is not too long.
    private static func isURL(_ text: String) -> Bool {
        text.utf8.count <= PrefetchRequest.urlBytesMax && PrefetchRequest.isAbsolute(text)
    }

    /// Returns true if the path ends with the extension of an image file.
    static func isImage(_ url: String) -> Bool {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let dot = path.lastIndex(of: "."), !path[dot...].contains("/") else { return false }
        return imageEndings.contains(path[path.index(after: dot)...].lowercased())
    }

    private static let imageEndings: Set<String> = [
        "apng", "avif", "bmp", "gif", "heic", "heif", "ico", "jpe", "jpeg", "jpg", "jxl", "png",
        "svg", "tif", "tiff", "webp",
    ]
}

extension ArraySlice<UInt8> {
    /// The slice without white space at either end.
    var trimmed: ArraySlice<UInt8> {
        var rest = drop { $0 <= 0x20 }
        while let last = rest.last, last <= 0x20 { rest.removeLast() }
        return rest
    }
}

/// A scanner for the elements and texts of an XML 1.0 document, in order, without attributes,
/// comments, processing instructions and declarations.
///
/// The scanner is lenient: it does not check that end tags match start tags.
struct XMLScanner {
    enum Event: Hashable {
        /// The start of an element with this local name, without a namespace prefix; an empty
        /// element yields a start and an end.
        case elementStart([UInt8])
        case elementEnd
        /// The text between two tags, trimmed, with the predefined entities and numeric references
        /// replaced; never empty.
        case text(String)
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int
    /// True if an empty element was started, whose end is still to be returned.
    private var hasPendingElementEnd = false
    /// The text read so far, which comments or CDATA sections may split.
    private var text: [UInt8] = []
    /// True if ``text`` is more than white space.
    private var hasNonWhitespace = false
    /// The event to return after the text before it.
    private var pendingEvent: Event?

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Returns the next event; `nil` at the end.
    mutating func next() throws(Sitemap.FormatError) -> Event? {
        if let event = pendingEvent.take() { return event }
        if hasPendingElementEnd {
            hasPendingElementEnd = false
            return .elementEnd
        }
        while position < bytes.endIndex {
            guard bytes[position] == UInt8(ascii: "<") else {
                readText()
                continue
            }
            guard let tag = try readMarkup() else { continue }
            let value = String(decoding: text[...].trimmed, as: UTF8.self)
            text.removeAll(keepingCapacity: true)
            hasNonWhitespace = false
            if value.isEmpty { return tag }
            pendingEvent = tag
            return .text(value)
        }
        return nil
    }

    /// Reads text up to the next `<`.
    private mutating func readText() {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.endIndex
        let start = text.count
        Self.appendUnescaped(bytes[position..<end], to: &text)
        hasNonWhitespace = hasNonWhitespace || text[start...].contains { $0 > 0x20 }
        position = end
    }

    /// Reads markup at a `<`; returns `nil` if it is not a tag, or is an empty element inside a
    /// text.
    private mutating func readMarkup() throws(Sitemap.FormatError) -> Event? {
        let rest = bytes[position...]
        if rest.starts(with: Self.comment) {
            _ = try skip(Self.comment.count, to: Self.commentEnd)
            return nil
        }
        if rest.starts(with: Self.cdataStart) {
            let literal = try skip(Self.cdataStart.count, to: Self.cdataEnd)
            text += literal
            hasNonWhitespace = hasNonWhitespace || literal.contains { $0 > 0x20 }
            return nil
        }
        let inside = try skip(1, to: [UInt8(ascii: ">")])
        switch inside.first {
        case UInt8(ascii: "!"), UInt8(ascii: "?"), nil: return nil
        case UInt8(ascii: "/"): return .elementEnd
        default:
            if inside.last == UInt8(ascii: "/") {
                // An empty element inside a text does not split the text.
                guard !hasNonWhitespace else { return nil }
                hasPendingElementEnd = true
            }
            let name = inside.prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") }
            let colon = name.lastIndex(of: UInt8(ascii: ":"))
            return .elementStart(Array(colon.map { name[($0 + 1)...] } ?? name))
        }
    }

    /// Returns the bytes between `count` bytes from here and `end`, and moves past `end`.
    private mutating func skip(
        _ count: Int, to end: [UInt8]
    ) throws(Sitemap.FormatError) -> ArraySlice<UInt8> {
        let start = position + count
        guard start <= bytes.endIndex, let found = bytes[start...].firstRange(of: end) else {
            throw .truncated
        }
        position = found.upperBound
        return bytes[start..<found.lowerBound]
    }

    private static let comment = Array("<!--".utf8)
    private static let commentEnd = Array("-->".utf8)
    private static let cdataStart = Array("<![CDATA[".utf8)
    private static let cdataEnd = Array("]]>".utf8)

    /// Appends `bytes` with references replaced; malformed references stay as they are.
    static func appendUnescaped(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
        var rest = bytes
        while let start = rest.firstIndex(of: UInt8(ascii: "&")) {
            text += rest[..<start]
            rest = rest[start...]
            let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";"))
            if let end, let character = character(rest[(start + 1)..<end]) {
                text += Array(String(character).utf8)
                rest = rest[(end + 1)...]
            } else {
                text.append(UInt8(ascii: "&"))
                rest = rest.dropFirst()
            }
        }
        text += rest
    }

    /// Returns the character of a reference; `nil` if it is malformed or not predefined.
    private static func character(_ name: ArraySlice<UInt8>) -> Character? {
        switch String(decoding: name, as: UTF8.self) {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case let number where number.hasPrefix("#x"):
            UInt32(number.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init).map(Character.init)
        case let number where number.hasPrefix("#"):
            UInt32(number.dropFirst()).flatMap(Unicode.Scalar.init).map(Character.init)
        default: nil
        }
    }
}
