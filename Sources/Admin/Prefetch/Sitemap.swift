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
