import Ground
import HTTPRules
import Testing

/// Bodies whose header contradicts their type or cannot be read.
@Suite("Malformed image headers")
struct ImageHeaderParserTests {
    private typealias Sample = ImageSample

    private static let pngStart: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let jpegOnly: [UInt8] = [0xFF, 0xD8, 0xFF]

    private static func page(_ type: String) -> (String, String, [UInt8], Bool) {
        ("a page as \(type)", type, "<!DOCTYPE html><html><body>hello</body></html>".bytes, true)
    }

    /// Name, type, body, and whether it is of another kind; otherwise it is unreadable.
    private static let cases: [(String, String, [UInt8], Bool)] =
        [
            "image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/heic",
            "image/jxl", "image/bmp", "image/x-icon", "image/tiff", "image/svg+xml",
        ].map(page) + pixels + boxes + icons + texts

    private static let pixels: [(String, String, [UInt8], Bool)] = [
        ("nothing", "image/jpeg", [], true), ("less than a signature", "image/png", [0x89], true),
        ("JPEG that ends", "image/jpeg", jpegOnly + [0xD9], false),
        ("JPEG with a scan first", "image/jpeg", jpegOnly + [0xDA, 0, 4, 1, 1], false),
        ("JPEG that starts twice", "image/jpeg", jpegOnly + [0xD8], false),
        ("JPEG with a segment of no length", "image/jpeg", jpegOnly + [0xE0, 0, 1], false),
        (
            "JPEG with a short frame", "image/jpeg", jpegOnly + [0xC0, 0, 7, 8, 0, 1, 0, 1, 1],
            false
        ),
        (
            "JPEG with a frame too long for its components", "image/jpeg",
            jpegOnly + [0xC0, 0, 12, 8, 0, 1, 0, 1, 1], false
        ),
        (
            "JPEG without a component", "image/jpeg",
            jpegOnly + [0xC0, 0, 8, 8, 0, 1, 0, 1, 0], false
        ),
        ("JPEG without a line", "image/jpeg", Sample.jpegStart + Sample.frame(9, 0), false),
        ("PNG without width", "image/png", Sample.png(0, 5), false),
        ("PNG too wide for its format", "image/png", Sample.png(1 << 31, 1), false),
        (
            "PNG that begins with another chunk", "image/png",
            pngStart + Sample.big(13) + "IDAT".bytes + Sample.big(1) + Sample.big(1), false
        ),
        (
            "PNG with a long header", "image/png",
            pngStart + Sample.big(14) + "IHDR".bytes + Sample.big(1) + Sample.big(1), false
        ),
        (
            "GIF without width", "image/gif",
            Sample.gif(screen: (0, 32), frame: (left: 0, top: 0, width: 0, height: 9)), false
        ),
        ("GIF without a frame", "image/gif", "GIF89a".bytes + [9, 0, 9, 0, 0, 0, 0, 0x3B], false),
        (
            "GIF with an unknown block", "image/gif", "GIF87a".bytes + [9, 0, 9, 0, 0, 0, 0, 9],
            false
        ),
        ("WebP of no height", "image/webp", Sample.lossy(5, 0), false),
        ("WebP with no key frame", "image/webp", Sample.webp("VP8 ", Array(1...10)), false),
        (
            "WebP of a later version", "image/webp", Sample.webp("VP8L", [0x2F, 0, 0, 0, 0x20]),
            false
        ),
        ("WebP with another chunk first", "image/webp", Sample.webp("ICCP", Array(0..<10)), false),
        ("WebP with a short chunk", "image/webp", Sample.webp("VP8X", Array(0..<9)), false),
        ("BMP of negative width", "image/bmp", Sample.bitmap(Sample.information(-127, 64)), false),
        ("BMP of no height", "image/bmp", Sample.bitmap(Sample.information(127, 0)), false),
        (
            "BMP with a header of no kind", "image/bmp",
            Sample.bitmap(Sample.information(1, 1, bytes: 80)), false
        ),
    ]

    private static let boxes: [(String, String, [UInt8], Bool)] = [
        ("a film as AVIF", "image/avif", Sample.fileType("isom", "mp41"), true),
        ("HEIC as AVIF", "image/avif", Sample.fileType("heic", "mif1"), true),
        ("AVIF as HEIC", "image/heic", Sample.fileType("avif", "avis"), true),
        ("AVIF without items", "image/avif", Sample.fileType("avif") + Sample.meta([]), false),
        ("AVIF of no size", "image/avif", Sample.fileType("avif") + Sample.meta([(0, 9)]), false),
        (
            "AVIF with a box beyond what holds it", "image/avif",
            Sample.fileType("avif")
                + Sample.box("meta", Sample.big(0) + Sample.big(99) + "iprp".bytes),
            false
        ),
        (
            "AVIF with a box shorter than its head", "image/avif",
            Sample.fileType("avif") + Sample.big(7) + "free".bytes, false
        ),
        (
            "AVIF with a box of more bytes than there are numbers", "image/avif",
            Sample.fileType("avif") + Sample.big(1) + "free".bytes
                + [UInt8](repeating: 0xFF, count: 8), false
        ),
        ("AVIF in a box without an end", "image/avif", [0, 0, 0, 0] + "ftypavif0000".bytes, false),
        (
            "AVIF with a short size", "image/avif",
            Sample.fileType("avif")
                + Sample.box(
                    "meta",
                    Sample.big(0)
                        + Sample.box(
                            "iprp", Sample.box("ipco", Sample.box("ispe", Sample.big(0))))), false
        ),
        ("JPEG XL without a codestream", "image/jxl", Sample.container([]), false),
        (
            "JPEG XL of a codestream too short", "image/jxl",
            Sample.container(Sample.box("jxlc", [0xFF, 0x0A])), false
        ),
        (
            "JPEG XL of something else", "image/jxl",
            Sample.container(Sample.box("jxlc", [0xFF, 0xD8, 0xFF])), false
        ),
    ]

    private static let icons: [(String, String, [UInt8], Bool)] = [
        ("icon of nothing", "image/x-icon", [0, 0, 1, 0, 0, 0, 0, 0], false),
        (
            "icon of more images than are looked at", "image/x-icon", [0, 0, 1, 0, 1, 1, 0, 0],
            false
        ),
        (
            "icon cut in its directory", "image/x-icon", [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0],
            false
        ),
        (
            "icon with an image in its directory", "image/x-icon",
            [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0, 32, 0] + Sample.little(40) + Sample.little(21),
            false
        ),
        (
            "icon of no image", "image/x-icon",
            Sample.icon([.init(width: 9, height: 9, data: [UInt8](repeating: 9, count: 60))]), false
        ),
        (
            "icon of no height", "image/x-icon",
            Sample.icon([.init(width: 9, height: 9, data: Sample.information(9, 0))]), false
        ),
    ]

    private static let texts: [(String, String, [UInt8], Bool)] = [
        ("text as SVG", "image/svg+xml", "svg".bytes, true),
        ("a feed as SVG", "image/svg+xml", "<?xml version='1.0'?><svgs>".bytes, true),
        ("another name as SVG", "image/svg+xml", "<svg:g>".bytes, true),
        ("an element in the document type", "image/svg+xml", "<!DOCTYPE svg [<svg>".bytes, true),
        ("half a comment", "image/svg+xml", "<!- <svg>".bytes, true),
        ("SVG in a comment that has not ended", "image/svg+xml", "<!--><svg>".bytes, false),
        ("SVG without the end of its name", "image/svg+xml", "<svg".bytes, false),
        ("SVG compressed but not said to be", "image/svg+xml", [0x1F, 0x8B, 8, 0, 0, 0], true),
    ]

    @Test("A contradiction and an unreadable header give different findings", arguments: cases)
    func refused(name: String, type: String, bytes: [UInt8], isOther: Bool) {
        let finding = probe(type, [bytes], isEnd: true)
        #expect(finding == (isOther ? .typeMismatch(nil) : .unreadable))
        #expect(probe(type, bytes.map { [$0] }, isEnd: true) == finding)
    }

    @Test("An icon without its image has the size in its directory")
    func iconWithoutImage() {
        let bytes = Sample.icon([.init(width: 32, height: 0, data: [])])
        let finding = probe("image/x-icon", [bytes], isEnd: true)
        #expect(finding.metadata?.size == PixelSize(width: 32, height: 256))
    }

    @Test("Entries of an icon that share an image, in any order, are read once")
    func iconSharing() {
        let image = Sample.IconImage(width: 16, height: 16, data: Sample.information(16, 32))
        var bytes = Sample.icon([image, image, image])
        let (first, third) = (6 + 48, 6 + 48 + 80)
        bytes.replaceSubrange(18..<22, with: Sample.little(third))
        bytes.replaceSubrange(34..<38, with: Sample.little(first))
        let finding = probe("image/x-icon", [bytes])
        #expect(finding.metadata?.size == PixelSize(width: 16, height: 16))
    }

    @Test("Sides are multiplied without overflow")
    func pixels() {
        let size = PixelSize(width: .max, height: .max)
        #expect(size?.pixels == 18_446_744_065_119_617_025)
        #expect(PixelSize(width: 0, height: 1) == nil && PixelSize(width: 1, height: 0) == nil)
    }
}
