import HTTPRules
import Testing

/// An image up to its header, built by hand, and the expected finding.
struct ImageSample: CustomTestStringConvertible {
    let name: String
    let type: String
    let bytes: [UInt8]
    let facts: ImageMetadata

    init(
        _ name: String, _ type: String, _ format: ImageFormat, _ width: UInt32, _ height: UInt32,
        _ bytes: [UInt8]
    ) {
        self.name = name
        self.type = type
        self.bytes = bytes
        facts = ImageMetadata(format: format, size: PixelSize(width: width, height: height))
    }

    var testDescription: String { name }

    /// Every format, with all forms of its header.
    static let all = pixels + mediaFiles + icons + texts
}

extension ImageSample {
    static func big16(_ number: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    }

    static func big(_ number: Int) -> [UInt8] { big16(number >> 16) + big16(number) }

    static func little16(_ number: Int) -> [UInt8] { big16(number).reversed() }

    static func little(_ number: Int) -> [UInt8] { big(number).reversed() }

    // MARK: JPEG, PNG, GIF, WebP, BMP

    static let jpegStart: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2]

    /// A frame header of one component.
    static func frame(_ width: Int, _ height: Int, code: UInt8 = 0xC0) -> [UInt8] {
        [0xFF, code] + big16(11) + [8] + big16(height) + big16(width) + [1, 1, 0x11, 0]
    }

    static func png(_ width: Int, _ height: Int) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + big(13) + "IHDR".bytes + big(width)
            + big(height) + [8, 6, 0, 0, 0, 1, 2, 3, 4]
    }

    /// Screen, a table of two colours, a comment, and a frame.
    static func gif(
        screen: (Int, Int), frame: (left: Int, top: Int, width: Int, height: Int)
    ) -> [UInt8] {
        "GIF89a".bytes + little16(screen.0) + little16(screen.1) + [0x80, 0, 0]
            + [0, 0, 0, 255, 255, 255] + [0x21, 0xFE, 3] + "one".bytes + [2] + "!,".bytes + [0]
            + [0x2C] + little16(frame.left) + little16(frame.top) + little16(frame.width)
            + little16(frame.height) + [0, 2]
    }

    static func webp(_ chunk: String, _ data: [UInt8]) -> [UInt8] {
        "RIFF".bytes + little(data.count + 12) + "WEBP".bytes + chunk.bytes + little(data.count)
            + data
    }

    static func lossy(_ width: Int, _ height: Int) -> [UInt8] {
        webp(
            "VP8 ",
            // The upper two bits of each side request scaling.
            [0x10, 2, 0, 0x9D, 1, 0x2A] + little16(width | 0x4000) + little16(height | 0x8000)
                + [0, 0])
    }

    static func bitmap(_ header: [UInt8]) -> [UInt8] {
        "BM".bytes + little(90) + little(0) + little(54) + header
    }

    static func information(_ width: Int, _ height: Int, bytes: Int = 40) -> [UInt8] {
        let head = little(bytes) + little(width) + little(height) + [1, 0, 24, 0]
        return head + [UInt8](repeating: 0, count: max(0, bytes - 16))
    }

    private static let pixels = [
        ImageSample(
            "JPEG, baseline", "image/jpeg", .jpeg, 300, 200, jpegStart + frame(300, 200)),
        ImageSample(
            "JPEG, progressive, behind fill bytes, rubbish and markers that stand alone",
            "image/jpg", .jpeg, 65_535, 1,
            jpegStart + [0xFF, 0xFF, 0xFF, 0xFE, 0, 2, 9, 9, 0xFF, 0, 0xFF, 1, 0xFF, 0xD3]
                + [0xFF, 0xC4, 0, 3, 0] + frame(65_535, 1, code: 0xC2)),
        ImageSample("PNG", "image/png", .png, 640, 480, png(640, 480)),
        ImageSample(
            "PNG, animated", "image/apng", .png, 7, 2_147_483_647,
            png(7, 2_147_483_647) + big(8) + "acTL".bytes + big(1) + big(0) + big(0)),
        ImageSample(
            "GIF", "image/gif", .gif, 100, 50,
            gif(screen: (100, 50), frame: (left: 1, top: 1, width: 9, height: 9))),
        ImageSample(
            "GIF with a frame beyond its screen", "image/gif", .gif, 65_535 + 65_535, 32,
            gif(screen: (32, 32), frame: (left: 65_535, top: 0, width: 65_535, height: 9))),
        ImageSample("WebP, lossy", "image/webp", .webp, 176, 144, lossy(176, 144)),
        ImageSample(
            "WebP, lossless", "image/webp", .webp, 16_384, 3,
            webp("VP8L", [0x2F] + little(16_383 | 2 << 14 | 1 << 28) + [0])),
        ImageSample(
            "WebP, extended", "image/webp", .webp, 1 << 24, 2,
            webp("VP8X", [0x10, 0, 0, 0, 0xFF, 0xFF, 0xFF, 1, 0, 0])),
        ImageSample(
            "BMP of OS/2", "image/bmp", .bmp, 65_535, 64,
            bitmap(little(12) + little16(65_535) + little16(64) + [1, 0, 24, 0])),
        ImageSample(
            "BMP of OS/2 2, its short form", "image/bmp", .bmp, 127, 64,
            bitmap(information(127, 64, bytes: 16))),
        ImageSample("BMP", "image/bmp", .bmp, 127, 64, bitmap(information(127, 64))),
        ImageSample(
            "BMP, top down, version 5", "image/x-ms-bmp", .bmp, 32, 2_147_483_648,
            bitmap(information(32, -2_147_483_648, bytes: 124))),
    ]

    // MARK: Icons

    struct IconImage {
        let width: UInt8
        let height: UInt8
        let data: [UInt8]
    }

    static func icon(kind: Int = 1, _ images: [IconImage]) -> [UInt8] {
        var directory = little16(0) + little16(kind) + little16(images.count)
        var data: [UInt8] = []
        for image in images {
            directory += [image.width, image.height, 0, 0, 1, 0, 32, 0]
            directory += little(image.data.count) + little(6 + 16 * images.count + data.count)
            data += image.data
        }
        return directory + data
    }

    /// In an icon the height includes the mask.
    private static let inIcon = information(16, 32)

    private static let icons = [
        ImageSample(
            "icon", "image/x-icon", .icon, 16, 16,
            icon([.init(width: 16, height: 16, data: inIcon)])),
        ImageSample(
            "icon of a side of 256", "image/vnd.microsoft.icon", .icon, 256, 256,
            icon([
                .init(width: 16, height: 16, data: inIcon),
                .init(width: 0, height: 0, data: png(256, 256)),
            ])),
        ImageSample(
            "icon with a PNG larger than it says", "image/x-icon", .icon, 70_000, 90_000,
            icon([
                .init(width: 32, height: 32, data: png(70_000, 90_000)),
                .init(width: 16, height: 16, data: inIcon),
            ])),
        ImageSample(
            "cursor with a bitmap larger than it says", "image/x-icon", .icon, 65_535, 32_768,
            icon(
                kind: 2,
                [.init(width: 16, height: 16, data: information(65_535, 65_535))])),
    ]

    // MARK: SVG

    private static func svg(_ name: String, _ text: String) -> ImageSample {
        ImageSample(name, "image/svg+xml", .svg, 0, 0, text.bytes)
    }

    private static let long = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!-- <html> --- a comment > -- -->
        <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" 'a[>' [
          <!ENTITY ns_svg "http://www.w3.org/2000/svg]>">
          <!-- don't ]> stop --> <?php echo ']>' ?> %more;
        ] >
        <?xml-stylesheet href="a.css"?>
        <svg:svg xmlns:svg="&ns_svg;" width="99999999" height="99999999"/>
        """

    private static let texts = [
        svg("SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"),
        svg("SVG of no more than its root", "<svg/>\n\n\n\n\n\n"),
        svg("SVG behind a byte order mark", "\u{FEFF}\n <svg>\n\n"),
        svg("SVG behind all that may precede its root", long),
        ImageSample(
            "SVG in UTF-16, low byte first", "image/svg+xml", .svg, 0, 0,
            "\u{FEFF}<!--\u{263A}--><svg >".utf16.flatMap { little16(Int($0)) }),
        ImageSample(
            "SVG in UTF-16, high byte first", "image/svg+xml", .svg, 0, 0,
            "\u{FEFF}<svg\n>".utf16.flatMap { big16(Int($0)) }),
    ]
}
