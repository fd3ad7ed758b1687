package import NIOCore

/// An image of a known type whose bytes are available from any offset without being stored.
package struct TestImage: Sendable {
    /// A run of the image's bytes.
    enum Run: Sendable {
        /// Literal bytes.
        case bytes(ByteBuffer)
        /// `count` bytes of seeded noise from the given offset of the noise's endless sequence.
        case noise(Noise, at: Int, count: Int)

        var count: Int {
            switch self {
            case .bytes(let buffer): buffer.readableBytes
            case .noise(_, _, let count): count
            }
        }
    }

    /// The name in messages and as the last part of its URL; only unreserved characters.
    package let name: String
    /// The media type.
    package let contentType: String
    /// The size in bytes.
    package let byteCount: Int
    private let runs: [Run]

    init(name: String, contentType: String, runs: [Run]) {
        self.name = name
        self.contentType = contentType
        self.runs = runs
        byteCount = runs.reduce(0) { $0 + $1.count }
    }

    /// Creates an image of exactly these bytes.
    package init(name: String, contentType: String, bytes: [UInt8]) {
        self.init(
            name: name, contentType: contentType, runs: [.bytes(ByteBuffer(bytes: bytes))])
    }

    /// Creates an image from consecutive pieces, none of which is copied.
    package init(name: String, contentType: String, pieces: [ByteBuffer]) {
        self.init(name: name, contentType: contentType, runs: pieces.map { .bytes($0) })
    }

    /// All bytes of the image.
    package var bytes: [UInt8] { bytes(0..<byteCount) }

    /// Returns the bytes of a range, which must lie within the image.
    package func bytes(_ range: Range<Int>) -> [UInt8] {
        slices(range).flatMap { Array($0.readableBytesView) }
    }

    /// Returns the bytes of a range as slices of shared storage, none copied.
    func slices(_ range: Range<Int>) -> [ByteBuffer] {
        precondition(range.lowerBound >= 0 && range.upperBound <= byteCount)
        var slices: [ByteBuffer] = []
        var start = 0
        for run in runs {
            let part = range.clamped(to: start..<start + run.count)
            if !part.isEmpty {
                append(run, part.lowerBound - start..<part.upperBound - start, to: &slices)
            }
            start += run.count
        }
        return slices
    }

    private func append(_ run: Run, _ range: Range<Int>, to slices: inout [ByteBuffer]) {
        switch run {
        case .bytes(let buffer):
            let at = buffer.readerIndex + range.lowerBound
            guard let slice = buffer.getSlice(at: at, length: range.count) else { return }
            slices.append(slice)
        case .noise(let noise, let origin, _):
            noise.append(origin + range.lowerBound, count: range.count, to: &slices)
        }
    }

    /// True if `piece` equals the image's bytes at `offset`.
    func holds(_ piece: ByteBuffer, at offset: Int) -> Bool {
        guard offset + piece.readableBytes <= byteCount else { return false }
        var rest = piece
        return slices(offset..<offset + piece.readableBytes).allSatisfy { slice in
            rest.readSlice(length: slice.readableBytes) == slice
        }
    }
}

extension TestImage: CustomStringConvertible {
    /// The name, type and size.
    package var description: String { "\(name) (\(contentType), \(byteCount) bytes)" }
}

extension TestImage {
    /// The types of image that can be generated.
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

    /// Returns an image with the head and the end that its type requires and seeded noise between.
    ///
    /// - Parameters:
    ///   - kind: The type.
    ///   - byteCount: The exact size in bytes, at least 150.
    ///   - seed: Images of different seeds differ in almost every byte.
    /// - Returns: The image, whose bytes are not stored.
    package static func generated(_ kind: Kind, byteCount: Int, seed: UInt64) -> TestImage {
        let noise = kind == .svg ? Noise.letters : Noise.bytes
        return TestImage(
            name: "\(kind.rawValue)-\(byteCount)-\(seed)", contentType: kind.contentType,
            runs: filled(ends(kind, byteCount: byteCount), noise, byteCount: byteCount, seed: seed))
    }

    /// Returns an image of these ends with noise between them.
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

    /// The ends of a JPEG: start of image, JFIF, a grey 64×64 frame, start of scan; end of image.
    private static var jpeg: ([UInt8], [UInt8]) {
        let jfif: [UInt8] =
            [0xFF, 0xE0, 0, 16] + Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0]
        let frame: [UInt8] = [0xFF, 0xC0, 0, 11, 8, 0, 64, 0, 64, 1, 1, 0x11, 0]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]
        return ([0xFF, 0xD8] + jfif + frame + scan, [0xFF, 0xD9])
    }

    /// Returns the ends of a PNG with this header and its checksum.
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

    /// Returns the head of a lossy 64×64 WebP, as far as its frame header.
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

    /// Returns the head of an AVIF with one 64×64 item.
    private static func avif(_ byteCount: Int) -> [UInt8] {
        let fileType = box("ftypavif", big(0) + Array("avifmif1miaf".utf8))
        let size = box("ispe", big(0) + big(64) + big(64))
        let head = fileType + box("meta", big(0) + box("iprp", box("ipco", size)))
        return head + big(byteCount - head.count) + Array("mdat".utf8)
    }

    /// Returns a box of the ISO base media file format; `type` may hold the first bytes of its
    /// data.
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

    /// Returns the head of an ICO with one 32×32 bitmap, whose height includes its mask.
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

extension TestImage {
    /// Returns a PNG whose header declares these dimensions, whatever follows.
    ///
    /// - Parameters:
    ///   - width: Width in pixels.
    ///   - height: Height in pixels.
    ///   - byteCount: The exact size in bytes, at least 100.
    /// - Returns: The image; only its ends are stored.
    package static func png(width: Int, height: Int, byteCount: Int = 200) -> TestImage {
        let ends = png(byteCount, big(width) + big(height) + [8, 6, 0, 0, 0, 0, 0, 0, 0])
        let seed = UInt64(width) &* 31 &+ UInt64(height)
        return TestImage(
            name: "png-\(width)x\(height)-\(byteCount)", contentType: "image/png",
            runs: filled(ends, .bytes, byteCount: byteCount, seed: seed))
    }

    /// Returns a 64×64 JPEG whose frame header follows a colour profile of that many bytes.
    ///
    /// - Parameters:
    ///   - profileBytes: A multiple of 60,000.
    ///   - seed: Images of different seeds differ in almost every byte.
    /// - Returns: The image; only its headers are stored.
    package static func jpeg(profileBytes: Int, seed: UInt64) -> TestImage {
        precondition(profileBytes % 60_000 == 0)
        var runs: [Run] = [.bytes(ByteBuffer(bytes: [0xFF, 0xD8]))]
        for part in 0..<profileBytes / 60_000 {
            let length: [UInt8] = [0xEA, 0x60]
            runs.append(.bytes(ByteBuffer(bytes: [0xFF, 0xE2] + length)))
            runs.append(.noise(.bytes, at: Noise.offset(seed) + part * 60_000, count: 59_998))
        }
        let frame: [UInt8] = [0xFF, 0xC0, 0, 11, 8, 0, 64, 0, 64, 1, 1, 0x11, 0]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]
        runs.append(.bytes(ByteBuffer(bytes: frame + scan)))
        runs.append(.noise(.bytes, at: Noise.offset(seed + 1), count: 5_000))
        runs.append(.bytes(ByteBuffer(bytes: [0xFF, 0xD9])))
        return TestImage(
            name: "jpeg-\(profileBytes)-\(seed)", contentType: "image/jpeg", runs: runs)
    }
}
