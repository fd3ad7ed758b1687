package import NIOCore

/// An image of a known type whose bytes can be had from any offset without being stored.
package struct TestImage: Sendable {
    /// A run of the image's bytes.
    enum Run: Sendable {
        /// Bytes given one by one.
        case bytes(ByteBuffer)
        /// `count` bytes of seeded noise from the given place of the noise's endless tape.
        case noise(Noise, at: Int, count: Int)

        var count: Int {
            switch self {
            case .bytes(let buffer): buffer.readableBytes
            case .noise(_, _, let count): count
            }
        }
    }

    /// What to call the image in messages and as last part of its URL; only unreserved characters.
    package let name: String
    /// Its media type.
    package let contentType: String
    /// Its size in bytes.
    package let byteCount: Int
    private let runs: [Run]

    init(name: String, contentType: String, runs: [Run]) {
        self.name = name
        self.contentType = contentType
        self.runs = runs
        byteCount = runs.reduce(0) { $0 + $1.count }
    }

    /// An image of exactly these bytes.
    package init(name: String, contentType: String, bytes: [UInt8]) {
        self.init(
            name: name, contentType: contentType, runs: [.bytes(ByteBuffer(bytes: bytes))])
    }

    /// An image that is these pieces one after the other, none of which is copied.
    package init(name: String, contentType: String, pieces: [ByteBuffer]) {
        self.init(name: name, contentType: contentType, runs: pieces.map { .bytes($0) })
    }

    /// All its bytes.
    package var bytes: [UInt8] { bytes(0..<byteCount) }

    /// The bytes of a range, which must lie within the image.
    package func bytes(_ range: Range<Int>) -> [UInt8] {
        slices(range).flatMap { Array($0.readableBytesView) }
    }

    /// The bytes of a range as slices of shared storage, none copied.
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

    /// Whether `piece` is what the image holds at `offset`.
    func holds(_ piece: ByteBuffer, at offset: Int) -> Bool {
        guard offset + piece.readableBytes <= byteCount else { return false }
        var rest = piece
        return slices(offset..<offset + piece.readableBytes).allSatisfy { slice in
            rest.readSlice(length: slice.readableBytes) == slice
        }
    }
}

extension TestImage: CustomStringConvertible {
    /// Its name and type.
    package var description: String { "\(name) (\(contentType), \(byteCount) bytes)" }
}

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

extension TestImage {
    /// A PNG that says to have so many pixels, whatever follows.
    ///
    /// - Parameters:
    ///   - width: Width in pixels.
    ///   - height: Height in pixels.
    ///   - byteCount: Its exact size in bytes, at least 100.
    /// - Returns: The image, of which no byte is stored but its ends.
    package static func png(width: Int, height: Int, byteCount: Int = 200) -> TestImage {
        let ends = png(byteCount, big(width) + big(height) + [8, 6, 0, 0, 0, 0, 0, 0, 0])
        let seed = UInt64(width) &* 31 &+ UInt64(height)
        return TestImage(
            name: "png-\(width)x\(height)-\(byteCount)", contentType: "image/png",
            runs: filled(ends, .bytes, byteCount: byteCount, seed: seed))
    }

    /// A JPEG of 64×64 whose frame header stands behind so many bytes of a colour profile.
    ///
    /// - Parameters:
    ///   - profileBytes: A multiple of 60,000.
    ///   - seed: Images of different seeds differ in almost every byte.
    /// - Returns: The image, of which no byte is stored but its headers.
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
