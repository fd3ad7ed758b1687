import HTTPRules
import Testing

@Suite("Detecting a truncated image by its first and last bytes")
struct ImageCompletenessTests {
    private static let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xD9]
    private static let pngStart: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let pngEnd: [UInt8] = [
        0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82,
    ]
    private static let webp: [UInt8] = [
        0x52, 0x49, 0x46, 0x46, 8, 0, 0, 0, 0x57, 0x45, 0x42, 0x50, 1, 2, 3, 4,
    ]

    private func ending(_ bytes: [UInt8]) -> ImageCompleteness {
        let count = ImageCompleteness.edgeBytes
        return ImageCompleteness(
            first: Array(bytes.prefix(count)), last: Array(bytes.suffix(count)),
            size: UInt64(bytes.count))
    }

    @Test("A complete image ends as its format requires")
    func whole() {
        #expect(ending(Self.jpeg) == .complete)
        #expect(ending(Self.pngStart + [1, 2, 3] + Self.pngEnd) == .complete)
        #expect(ending(Array("GIF89a".utf8) + [0, 0x3B]) == .complete)
        #expect(ending(Self.webp) == .complete)
        #expect(ending([0x42, 0x4D, 8, 0, 0, 0, 1, 1]) == .complete)
    }

    @Test("An image without its last byte is truncated")
    func cut() {
        #expect(ending(Self.jpeg.dropLast()) == .truncated)
        #expect(ending(Self.pngStart + [1, 2, 3] + Self.pngEnd.dropLast()) == .truncated)
        #expect(ending(Array("GIF89a".utf8) + [0]) == .truncated)
        #expect(ending(Self.webp.dropLast()) == .truncated)
        #expect(ending([0x42, 0x4D, 8, 0, 0, 0, 1]) == .truncated)
    }

    @Test("For an unknown format or an empty body it cannot be decided")
    func unknown() {
        #expect(ending(Array("<svg/>".utf8)) == .unknown)
        #expect(ending([]) == .unknown)
    }
}
