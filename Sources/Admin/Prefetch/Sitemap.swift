/// What a sitemap names (sitemaps.org protocol 0.9, with Google's image extension).
///
/// Read by a scan for elements and not by a parser of XML: nothing here needs entities of a
/// document's own, attributes or validation, and what an operator names may come from a stranger.
package struct Sitemap: Hashable, Sendable {
    /// URLs of images, in order, without repeats.
    package private(set) var images: [String] = []
    /// URLs of further sitemaps; only an index has some.
    package private(set) var sitemaps: [String] = []
    /// More was named than is kept.
    package private(set) var isTruncated = false
    /// Names that are no absolute URLs, or too long for one.
    package private(set) var rejectedCount = 0

    package enum FormatError: Error, Hashable, Sendable {
        /// Neither a `urlset` nor a `sitemapindex`, nor a list of URLs.
        case notSitemap
        /// An element or a comment does not end.
        case truncated
        /// It begins as what gzip writes.
        case compressed
    }

    /// Sitemaps that an index may name, of which the others are left out.
    package static let sitemapsMax = 100
    /// Bytes of one sitemap at most; the protocol allows 50 MiB.
    package static let bytesMax = 10 << 20

    /// Reads XML, or one URL a line; takes at most `imagesMax` images.
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
        // A page is none, but some sitemaps list images as pages.
        guard parent == Self.image || Self.isImage(value) else { return }
        add(value, imagesMax, &known)
    }

    private mutating func add(_ url: String, _ imagesMax: Int, _ known: inout Set<String>) {
        guard !known.contains(url) else { return }
        guard images.count < imagesMax else { return isTruncated = true }
        known.insert(url)
        images.append(url)
    }

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

    private static func isURL(_ text: String) -> Bool {
        text.utf8.count <= PrefetchRequest.urlBytesMax && PrefetchRequest.isAbsolute(text)
    }

    /// True if the path ends as files of images do.
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
    /// Without white space at either end.
    var trimmed: ArraySlice<UInt8> {
        var rest = drop { $0 <= 0x20 }
        while let last = rest.last, last <= 0x20 { rest.removeLast() }
        return rest
    }
}

/// Elements and texts of an XML document (XML 1.0), one after the other, without attributes,
/// comments, processing instructions and declarations.
///
/// Forgiving: whether an end belongs to its beginning is not looked at.
struct XMLScanner {
    enum Event: Hashable {
        /// The element's local name, without the prefix of a namespace; an empty element opens and
        /// closes.
        case elementStart([UInt8])
        case elementEnd
        /// What stands between two tags, trimmed, with the five entities of XML and numbers
        /// replaced; never empty.
        case text(String)
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int
    /// An element without content was opened.
    private var hasPendingElementEnd = false
    /// What was read of a text that a comment or CDATA has parted.
    private var text: [UInt8] = []
    /// It is more than white space.
    private var hasNonWhitespace = false
    /// Comes after the text before it.
    private var pendingEvent: Event?

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Nil at the end.
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

    private mutating func readText() {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.endIndex
        let start = text.count
        Self.appendUnescaped(bytes[position..<end], to: &text)
        hasNonWhitespace = hasNonWhitespace || text[start...].contains { $0 > 0x20 }
        position = end
    }

    /// What stands at a `<`; nil if it is no tag.
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
                // Within a text it parts nothing.
                guard !hasNonWhitespace else { return nil }
                hasPendingElementEnd = true
            }
            let name = inside.prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") }
            let colon = name.lastIndex(of: UInt8(ascii: ":"))
            return .elementStart(Array(colon.map { name[($0 + 1)...] } ?? name))
        }
    }

    /// What stands between `count` bytes from here and `end`; goes on behind that.
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

    /// References that are none stay as they are.
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
