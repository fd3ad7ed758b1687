import HTTPRules

/// Formats made of boxes: AVIF, HEIF and JPEG XL.
extension ImageSample {
    static func box(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(8 + data.count) + type.bytes + data
    }

    /// A box with its length in eight bytes.
    static func longBox(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(1) + type.bytes + big(0) + big(16 + data.count) + data
    }

    static func fileType(_ major: String, _ compatible: String...) -> [UInt8] {
        box("ftyp", major.bytes + big(0) + compatible.joined().bytes)
    }

    static func itemSize(_ width: Int, _ height: Int) -> [UInt8] {
        box("ispe", big(0) + big(width) + big(height))
    }

    /// A meta box with items of these sizes and the other required boxes.
    static func meta(_ sizes: [(Int, Int)]) -> [UInt8] {
        var properties: [UInt8] = []
        for (width, height) in sizes {
            properties += itemSize(width, height) + box("pixi", big(0) + [3, 8, 8, 8])
        }
        let all = box("iprp", longBox("ipco", properties) + box("ipma", big(0) + big(1)))
        return box("meta", big(0) + box("hdlr", big(0) + big(0) + "pict".bytes) + all)
    }

    /// A track header of version 0 or 1.
    static func track(_ width: Int, _ height: Int, version: UInt8) -> [UInt8] {
        let times = [UInt8](repeating: 0, count: (version == 0 ? 84 : 96) - 12)
        return box(
            "trak", box("tkhd", [version, 0, 0, 3] + times + big(width << 16) + big(height << 16)))
    }

    static let mediaFiles = [
        ImageSample(
            "AVIF", "image/avif", .avif, 640, 427,
            fileType("avif", "mif1", "miaf") + meta([(640, 427)]) + box("mdat", [1, 2, 3])),
        ImageSample(
            "AVIF by a compatible brand, behind other boxes", "image/avif", .avif, 17_000, 17_000,
            fileType("mif1", "isom", "abcd", "avif") + box("free", [9, 9, 9])
                + longBox("skip", [8, 8]) + meta([(17_000, 17_000)])),
        ImageSample(
            "HEIC in tiles, with a thumbnail", "image/heic", .heif, 4_032, 3_024,
            fileType("heic", "mif1") + meta([(512, 512), (4_032, 3_024), (320, 240)])),
        ImageSample(
            "AVIF under the type of its family", "image/heif", .heif, 64, 64,
            fileType("avif", "mif1") + meta([(64, 64)])),
        ImageSample(
            "AVIF sequence", "image/avif", .avif, 800, 600,
            fileType("avis", "avif", "msf1") + meta([(10, 10)])
                + box(
                    "moov",
                    box("mvhd", big(0)) + track(300, 200, version: 0)
                        + track(800, 600, version: 1))),
        ImageSample(
            "HEIF sequence of tracks only", "image/heic-sequence", .heif, 300, 200,
            fileType("hevc", "msf1") + box("moov", track(300, 200, version: 0))),
        ImageSample(
            "JPEG XL, a multiple of 8 and square", "image/jxl", .jxl, 256, 256,
            // Small, 31 in 5 bits, ratio 1.
            [0xFF, 0x0A, 0b0111_1111, 0b0000_0000] + [UInt8](repeating: 7, count: 12)),
        ImageSample(
            "JPEG XL, 16 to 9", "image/jxl", .jxl, 1_920, 1_080,
            [0xFF, 0x0A] + bits([(0, 1), (1, 2), (1_079, 13), (5, 3)])
                + [UInt8](repeating: 7, count: 12)),
        ImageSample(
            "JPEG XL of the largest sides, in a container", "image/jxl", .jxl, 1 << 30, 1 << 30,
            container(box("jxlc", [0xFF, 0x0A] + giant + [1, 2, 3]))),
        ImageSample(
            "JPEG XL in parts", "image/jxl", .jxl, 1 << 30, 1 << 30,
            container(
                box("Exif", [1, 2, 3]) + box("jxlp", big(0) + [0xFF])
                    + box("jxlp", big(1)) + box("xml ", [60]) + longBox("jxlp", big(2) + [0x0A])
                    + box("jxlp", big(3) + giant.prefix(3)) + big(0) + "jxlp".bytes + big(4)
                    + giant.dropFirst(3) + [9])),
    ]

    private static let giant = bits([
        (0, 1), (3, 2), ((1 << 30) - 1, 30), (0, 3), (3, 2), ((1 << 30) - 1, 30),
    ])

    static func container(_ boxes: [UInt8]) -> [UInt8] {
        box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + fileType("jxl ", "jxl ") + boxes
    }

    /// Numbers of the given bit counts in sequence, lowest bit first.
    static func bits(_ numbers: [(value: Int, count: Int)]) -> [UInt8] {
        let all = numbers.flatMap { number in
            (0..<number.count).map { UInt8(number.value >> $0 & 1) }
        }
        var bytes = [UInt8](repeating: 0, count: (all.count + 7) / 8)
        for (place, bit) in all.enumerated() { bytes[place / 8] |= bit << UInt8(place % 8) }
        return bytes
    }
}
