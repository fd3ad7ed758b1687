import Ground
import HTTPRules
import Testing

@Suite("What the first and the last bytes of an image tell")
struct ImageBytesTests {
    private static let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xD9]
    private static let pngStart: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let pngEnd: [UInt8] = [
        0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82,
    ]
    private static let webp: [UInt8] = [
        0x52, 0x49, 0x46, 0x46, 8, 0, 0, 0, 0x57, 0x45, 0x42, 0x50, 1, 2, 3, 4,
    ]

    private func ending(_ bytes: [UInt8]) -> ImageEnding {
        let count = ImageEnding.edgeBytes
        return ImageEnding(
            first: Array(bytes.prefix(count)), last: Array(bytes.suffix(count)),
            size: UInt64(bytes.count))
    }

    @Test("a whole image ends as its format says")
    func whole() {
        #expect(ending(Self.jpeg) == .whole)
        #expect(ending(Self.pngStart + [1, 2, 3] + Self.pngEnd) == .whole)
        #expect(ending(Array("GIF89a".utf8) + [0, 0x3B]) == .whole)
        #expect(ending(Self.webp) == .whole)
        #expect(ending([0x42, 0x4D, 8, 0, 0, 0, 1, 1]) == .whole)
    }

    @Test("an image without its last byte is cut")
    func cut() {
        #expect(ending(Self.jpeg.dropLast()) == .cut)
        #expect(ending(Self.pngStart + [1, 2, 3] + Self.pngEnd.dropLast()) == .cut)
        #expect(ending(Array("GIF89a".utf8) + [0]) == .cut)
        #expect(ending(Self.webp.dropLast()) == .cut)
        #expect(ending([0x42, 0x4D, 8, 0, 0, 0, 1]) == .cut)
    }

    @Test("of an unknown format, and of nothing, the end cannot be told")
    func unknown() {
        #expect(ending(Array("<svg/>".utf8)) == .unknown)
        #expect(ending([]) == .unknown)
    }

    private func head(_ fields: String) -> AnswerHead {
        let bytes = Array(fields.utf8)
        let name = bytes.firstIndex(of: UInt8(ascii: ":")) ?? 0
        let line = FieldLine(
            id: .contentType, name: Extent(start: 0, count: name),
            value: Extent(start: name + 2, count: bytes.count - name - 2))
        return AnswerHead(status: 200, bytes: bytes, lines: [line])
    }

    @Test(
        "a type that always begins in one way is contradicted by another beginning",
        arguments: [
            ("image/jpeg", jpeg, false), ("IMAGE/JPEG; q=1", jpeg, false),
            ("image/png", jpeg, true), ("image/webp", webp, false), ("image/gif", webp, true),
            ("image/jpeg", [], true), ("image/svg+xml", jpeg, false), ("image/avif", [], true),
            ("image/jpg", jpeg, false), ("image/jpg", webp, true),
            ("image/x-icon", [0, 0, 1, 0, 1, 0], false), ("image/x-icon", jpeg, true),
            ("image/vnd.microsoft.icon", [0, 0, 1, 0, 1, 0], false),
            ("image/vnd.microsoft.icon", [0, 0, 2, 0, 1, 0], false),
            ("image/vnd.microsoft.icon", [0, 0, 3, 0, 1, 0], true),
            ("image/tiff", [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0], false),
            ("image/tiff", [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8], false),
            ("image/tiff", [0x49, 0x49, 0x2B, 0, 8, 0, 0, 0], false),
            ("image/tiff", [0x4D, 0x4D, 0, 0x2B, 0, 8, 0, 0], false),
            ("image/tiff", [0x49, 0x49, 0, 0x2A, 8, 0, 0, 0], true), ("image/tiff", [], true),
            ("image/jxl", [0xFF, 0x0A, 0xF2], false), ("image/jxl", jpeg, true),
            (
                "image/jxl",
                [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A, 0, 0, 0, 0x14],
                false
            ),
            ("image/jxl", [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0], true),
        ] as [(String, [UInt8], Bool)])
    func signature(type: String, first: [UInt8], contradicts: Bool) {
        #expect(
            ImageSignature.contradicts(head("content-type: \(type)"), first: first) == contradicts)
    }

    /// A file of the ISO base media file format, as far as it is looked at: its `ftyp` box and the
    /// size of the next.
    private func file(_ type: String = "ftyp", major: String, compatible: [String] = []) -> [UInt8]
    {
        let count = UInt8(16 + 4 * compatible.count)
        let box = [0, 0, 0, count] + (type + major).utf8 + [0, 0, 0, 0]
        return Array(
            (box + compatible.joined().utf8 + [0, 0, 0, 9]).prefix(ImageSignature.bytesCount))
    }

    @Test(
        "a type of the ISO base media file format wants one of its brands, major or compatible",
        arguments: [
            ("image/avif", ["avif"], false), ("image/avif", ["avis", "avif"], false),
            ("image/avif", ["avis"], false), ("image/avif", ["mif1", "miaf", "avif"], false),
            ("image/avif", ["heic", "mif1"], true), ("image/avif", ["isom", "mp41"], true),
            ("image/heic", ["heic", "mif1"], false), ("image/heic", ["heix"], false),
            ("image/heic", ["heim"], false), ("image/heic", ["mif1", "heis"], false),
            ("image/heic", ["isom", "mp41"], true), ("image/heic", ["avif", "avis"], true),
            ("image/heif", ["mif1", "avif"], false), ("image/heif", ["heic"], false),
            ("image/heif", ["isom"], true), ("image/heic-sequence", ["hevc", "msf1"], false),
            ("image/heic-sequence", ["hevx"], false), ("image/heic-sequence", ["hevm"], false),
            ("image/heic-sequence", ["hevs"], false), ("image/heif-sequence", ["msf1"], false),
            ("image/heif-sequence", ["isom"], true),
        ] as [(String, [String], Bool)])
    func brands(type: String, brands: [String], contradicts: Bool) {
        let first = file(major: brands[0], compatible: Array(brands.dropFirst()))
        let head = head("content-type: \(type)")
        #expect(ImageSignature.contradicts(head, first: first) == contradicts)
        let other = file("moov", major: brands[0], compatible: Array(brands.dropFirst()))
        #expect(ImageSignature.contradicts(head, first: other))
    }

    @Test("brands beyond the bytes that are looked at, and sizes that cannot be, are judged so")
    func brandsOutOfSight() {
        let head = head("content-type: image/avif")
        let many = Array(repeating: "isom", count: 20)
        #expect(!ImageSignature.contradicts(head, first: file(major: "mp41", compatible: many)))
        let whole = file(major: "isom", compatible: ["mp41"])
        for count in 0..<12 {
            #expect(ImageSignature.contradicts(head, first: Array(whole.prefix(count))))
        }
        let avif = file(major: "avif", compatible: ["mif1"])
        // 0 is to the file's end, 1 has its size in eight bytes before the brands.
        for size in UInt8(0)..<12 {
            let first = [0, 0, 0, size] + avif.dropFirst(4)
            #expect(ImageSignature.contradicts(head, first: first) == (size > 1))
        }
    }

    @Test("in a box of no known end the brands cannot be told from what follows")
    func boxWithoutEnd() {
        let head = head("content-type: image/avif")
        for size in UInt8(0)...1 {
            let first = [0, 0, 0, size] + file(major: "isom").dropFirst(4)
            #expect(!ImageSignature.contradicts(head, first: first))
        }
    }
}
