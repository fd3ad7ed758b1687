import Ground

/// The image formats that are known, by their media types and by their first bytes.
package enum ImageFormat: CaseIterable, Sendable {
    case jpeg
    /// Animated PNG too.
    case png
    case gif
    case webp
    case avif
    /// HEIC, and all else of its family but AVIF.
    case heif
    case jxl
    case bmp
    /// Icons and cursors of Windows.
    case icon
    case tiff
    case svg

    /// The media types of the format in lower case: those of IANA's registry, and those that
    /// servers are seen to use.
    private var types: [String] {
        switch self {
        case .jpeg: ["image/jpeg", "image/jpg", "image/pjpeg"]
        case .png: ["image/png", "image/apng"]
        case .gif: ["image/gif"]
        case .webp: ["image/webp"]
        case .avif: ["image/avif"]
        case .heif: ["image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence"]
        case .jxl: ["image/jxl"]
        case .bmp: ["image/bmp", "image/x-ms-bmp"]
        case .icon: ["image/x-icon", "image/vnd.microsoft.icon"]
        case .tiff: ["image/tiff"]
        case .svg: ["image/svg+xml"]
        }
    }

    /// The format with this media type, which lies in `essence` without its parameters; nil if none
    /// has it.
    init?(_ bytes: Span<UInt8>, type essence: Range<Int>) {
        for format in Self.allCases
        where format.types.contains(where: { bytes.matchesIgnoringCase($0, at: essence) }) {
            self = format
            return
        }
        return nil
    }

    /// Whether it is a grid of pixels, of which no browser runs anything.
    var isRaster: Bool { self != .svg }
}

/// Width and height in pixels, before any rotation that the image asks for; neither is 0.
package struct PixelSize: Hashable, Sendable {
    package let width: UInt32
    package let height: UInt32

    /// Nil if there is no pixel.
    package init?(width: UInt32, height: UInt32) {
        guard width > 0, height > 0 else { return nil }
        self.width = width
        self.height = height
    }

    /// Width times height.
    package var pixels: UInt64 { UInt64(width) * UInt64(height) }

    /// The one with more pixels; nil is less than any.
    static func larger(_ left: PixelSize?, _ right: PixelSize?) -> PixelSize? {
        (left?.pixels ?? 0) >= (right?.pixels ?? 0) ? left : right
    }
}

/// The magic bytes of the formats.
///
/// JPEG, PNG, GIF, BMP, WebP, icons and cursors are as in the MIME Sniffing Standard, §6.1; TIFF as
/// in TIFF 6.0 §2 (42 after the byte order) and BigTIFF (43); JPEG XL as in ISO/IEC 18181-2 (a bare
/// codestream, or the signature box of a container). AVIF and HEIF are files of the ISO base media
/// file format, which begin with the box `ftyp` (ISO/IEC 14496-12 §4.3).
enum ImageSignature {
    /// Bytes from the body's beginning that are looked at.
    static let bytesCount = 12

    static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// The reader of the format that a body with these first ``bytesCount`` bytes has, or all of
    /// them; nil if they are those of none.
    ///
    /// `isTypeKnown`: it claims to be an image of a known kind. Otherwise only signatures count
    /// that no other file has by chance.
    static func reader(_ first: Span<UInt8>, isTypeKnown: Bool) -> (any ImageHeaderParser)? {
        if first.hasPrefix(with: [0xFF, 0xD8, 0xFF]) { return JPEGHeader() }
        if first.hasPrefix(with: png) { return PNGHeader() }
        if first.hasPrefix(with: "GIF8") { return GIFHeader() }
        if first.hasPrefix(with: "RIFF"), first.hasPrefix(with: "WEBP", at: 8) {
            return WebPHeader()
        }
        if first.hasPrefix(with: "ftyp", at: 4) { return ISOMediaHeader() }
        if first.hasPrefix(with: jxlContainer) {
            return JXLHeader(isContainer: true)
        }
        guard isTypeKnown else { return nil }
        if first.hasPrefix(with: [0xFF, 0x0A]) { return JXLHeader(isContainer: false) }
        if first.hasPrefix(with: "BM") { return BitmapHeader() }
        if first.hasPrefix(with: [0, 0, 1, 0]) || first.hasPrefix(with: [0, 0, 2, 0]) {
            return IconHeader()
        }
        return tiff.contains { first.hasPrefix(with: $0) } ? TIFFHeader() : nil
    }

    private static let jxlContainer: [UInt8] = [
        0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    private static let tiff: [[UInt8]] = [
        [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A], [0x49, 0x49, 0x2B, 0], [0x4D, 0x4D, 0, 0x2B],
    ]
}
