import NIOCore

extension TestImage {
    /// The types of image that can be made.
    package enum Kind: String, CaseIterable, Sendable {
        case jpeg, png, gif, webp, svg, avif, bmp, ico

        /// The media type.
        package var contentType: String {
            switch self {
            case .svg: "image/svg+xml"
            case .ico: "image/x-icon"
            default: "image/\(rawValue)"
            }
        }
    }

    /// An image with the head and the end its type demands and seeded noise between them.
    ///
    /// - Parameters:
    ///   - kind: The type.
    ///   - byteCount: Its exact size in bytes, at least 150.
    ///   - seed: Images of different seeds differ in almost every byte.
    /// - Returns: The image, of which no byte is stored.
    package static func generated(_ kind: Kind, byteCount: Int, seed: UInt64) -> TestImage {
        let noise = kind == .svg ? Noise.letters : Noise.bytes
        return TestImage(
            name: "\(kind.rawValue)-\(byteCount)-\(seed)", contentType: kind.contentType,
            runs: filled(ends(kind, byteCount: byteCount), noise, byteCount: byteCount, seed: seed))
    }

    /// The ends, and noise between them.
    static func filled(
        _ ends: (head: [UInt8], tail: [UInt8]), _ noise: Noise, byteCount: Int, seed: UInt64
    ) -> [Run] {
        let filling = byteCount - ends.head.count - ends.tail.count
        precondition(filling >= 0, "an image of \(byteCount) bytes has no room for its head")
        return [
            .bytes(ByteBuffer(bytes: ends.head)),
            .noise(noise, at: Noise.offset(seed), count: filling),
            .bytes(ByteBuffer(bytes: ends.tail)),
        ]
    }

    private static func ends(_ kind: Kind, byteCount: Int) -> (head: [UInt8], tail: [UInt8]) {
        switch kind {
        case .jpeg: jpeg
        case .png: png(byteCount, big(1) + big(1) + [8, 0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55])
        case .gif: gif
        case .webp: (webp(byteCount), [])
        case .svg: svg
        case .avif: (avif(byteCount), [])
        case .bmp: (bmp(byteCount), [])
        case .ico: (ico(byteCount), [])
        }
    }

    /// Start of image, JFIF, a grey 64×64 frame, start of scan; end of image.
    private static var jpeg: ([UInt8], [UInt8]) {
        let jfif: [UInt8] =
            [0xFF, 0xE0, 0, 16] + Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0]
        let frame: [UInt8] = [0xFF, 0xC0, 0, 11, 8, 0, 64, 0, 64, 1, 1, 0x11, 0]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]
        return ([0xFF, 0xD8] + jfif + frame + scan, [0xFF, 0xD9])
    }

    /// With what its header holds and the checksum of that.
    static func png(_ byteCount: Int, _ header: [UInt8]) -> (head: [UInt8], tail: [UInt8]) {
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let start: [UInt8] = signature + big(13) + Array("IHDR".utf8) + header
        let end: [UInt8] = big(0) + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]
        let checksum: [UInt8] = [0, 0, 0, 0]
        let data = byteCount - start.count - 8 - checksum.count - end.count
        return (start + big(data) + Array("IDAT".utf8), checksum + end)
    }

    private static var gif: ([UInt8], [UInt8]) {
        let screen: [UInt8] = [64, 0, 64, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        let image: [UInt8] = [0x2C, 0, 0, 0, 0, 64, 0, 64, 0, 0, 8]
        return (Array("GIF89a".utf8) + screen + image, [0, 0x3B])
    }

    /// A lossy image of 64×64, as far as its frame header.
    private static func webp(_ byteCount: Int) -> [UInt8] {
        let frame: [UInt8] = [0x10, 0, 0, 0x9D, 0x01, 0x2A, 64, 0, 64, 0]
        return Array("RIFF".utf8) + little(byteCount - 8) + Array("WEBPVP8 ".utf8)
            + little(byteCount - 20) + frame
    }

    private static var svg: ([UInt8], [UInt8]) {
        let head = """
            <?xml version="1.0" encoding="UTF-8"?>
            <svg xmlns="http://www.w3.org/2000/svg"><desc>
            """
        return (Array(head.utf8), Array("</desc></svg>\n".utf8))
    }

    /// An item of 64×64.
    private static func avif(_ byteCount: Int) -> [UInt8] {
        let fileType = box("ftypavif", big(0) + Array("avifmif1miaf".utf8))
        let size = box("ispe", big(0) + big(64) + big(64))
        let head = fileType + box("meta", big(0) + box("iprp", box("ipco", size)))
        return head + big(byteCount - head.count) + Array("mdat".utf8)
    }

    /// A box of the ISO base media file format; `type` may hold the first bytes of its data.
    private static func box(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(4 + type.utf8.count + data.count) + Array(type.utf8) + data
    }

    private static func bmp(_ byteCount: Int) -> [UInt8] {
        Array("BM".utf8) + little(byteCount) + little(0) + little(54)
            + bitmapHeader(width: 8, height: 8, dataBytes: byteCount - 54)
    }

    private static func bitmapHeader(width: Int, height: Int, dataBytes: Int) -> [UInt8] {
        little(40) + little(width) + little(height) + [1, 0, 24, 0] + little(0)
            + little(dataBytes) + [UInt8](repeating: 0, count: 16)
    }

    /// One image of 32×32 as a bitmap, whose height counts its mask too.
    private static func ico(_ byteCount: Int) -> [UInt8] {
        [0, 0, 1, 0, 1, 0, 32, 32, 0, 0, 1, 0, 32, 0] + little(byteCount - 22) + little(22)
            + bitmapHeader(width: 32, height: 64, dataBytes: byteCount - 62)
    }

    static func big(_ number: Int) -> [UInt8] {
        little(number).reversed()
    }

    private static func little(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
