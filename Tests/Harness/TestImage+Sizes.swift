import NIOCore

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
