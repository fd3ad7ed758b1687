import Ground

/// The known image formats, recognised by media type and by first bytes.
package enum ImageFormat: CaseIterable, Sendable {
    case jpeg
    /// PNG, including animated PNG.
    case png
    case gif
    case webp
    case avif
    /// HEIC and all other formats of its family except AVIF.
    case heif
    case jxl
    case bmp
    /// Icons and cursors of Windows.
    case icon
    case tiff
    case svg

    /// The media types of the format in lower case: the registered ones and those that servers use.
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

    /// Identifies the format by the media type in `essence`, without parameters; `nil` if there is
    /// none.
    init?(_ bytes: Span<UInt8>, type essence: Range<Int>) {
        for format in Self.allCases
        where format.types.contains(where: { bytes.matchesIgnoringCase($0, at: essence) }) {
            self = format
            return
        }
        return nil
    }

    /// True if the image is a grid of pixels, in which browsers run no scripts.
    var isRaster: Bool { self != .svg }
}

/// The width and height of an image in pixels, before any rotation it specifies; neither is 0.
package struct PixelSize: Hashable, Sendable {
    /// The width in pixels.
    package let width: UInt32
    /// The height in pixels.
    package let height: UInt32

    /// Creates a size; `nil` if a side is 0.
    package init?(width: UInt32, height: UInt32) {
        guard width > 0, height > 0 else { return nil }
        self.width = width
        self.height = height
    }

    /// The number of pixels: width times height.
    package var pixels: UInt64 { UInt64(width) * UInt64(height) }

    /// Returns the size with more pixels; `nil` counts as the smallest.
    static func larger(_ left: PixelSize?, _ right: PixelSize?) -> PixelSize? {
        (left?.pixels ?? 0) >= (right?.pixels ?? 0) ? left : right
    }
}

/// The magic bytes of the formats.
///
/// JPEG, PNG, GIF, BMP, WebP, icons and cursors follow the MIME Sniffing Standard, §6.1; TIFF
/// follows TIFF 6.0 §2 (42 after the byte order) and BigTIFF (43); JPEG XL follows ISO/IEC 18181-2
/// (a bare codestream, or the signature box of a container). AVIF and HEIF are ISO base media
/// files, which begin with the box `ftyp` (ISO/IEC 14496-12 §4.3).
enum ImageSignature {
    /// The number of bytes examined at the beginning of the body.
    static let bytesCount = 12

    static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Returns the parser of the format that a body begins with; `nil` if the format is unknown.
    ///
    /// - Parameters:
    ///   - first: the first ``bytesCount`` bytes of the body, or all of it.
    ///   - isTypeKnown: true if the media type is that of a known format. If false, only signatures
    ///     count that no other file has by chance.
    /// - Returns: a new parser, which has read nothing yet; `nil` if the format is unknown.
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

/// Whether an image ends as its format requires, for bodies that are delimited by the end of the
/// connection.
///
/// Only the first and last bytes are examined; damage inside the file goes undetected.
package enum ImageCompleteness: Hashable, Sendable {
    /// The image ends as its format requires.
    case complete
    /// The image is truncated according to its format.
    case truncated
    /// The format has no end that can be recognised (AVIF, SVG and others), so completeness is
    /// unknown.
    case unknown

    /// The number of bytes examined at either end.
    package static let edgeBytes = 16

    /// Examines a body.
    ///
    /// - Parameters:
    ///   - first: the first ``edgeBytes`` of the body, or all of it.
    ///   - last: the last ``edgeBytes`` of the body, or all of it.
    ///   - size: the length of the body in bytes.
    package init(first: [UInt8], last: [UInt8], size: UInt64) {
        if first.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = last.suffix(2) == [0xFF, 0xD9] ? .complete : .truncated
        } else if first.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            // The chunk IEND: length 0, type, and its fixed CRC (PNG, third edition, §11.2.5).
            let end: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]
            self = last.suffix(12) == end ? .complete : .truncated
        } else if first.starts(with: Array("GIF8".utf8)) {
            self = last.last == 0x3B ? .complete : .truncated
        } else if first.starts(with: Array("RIFF".utf8)), first.count >= 12 {
            // RIFF's size covers what follows it, padded to an even number.
            let word = UInt64(Self.word(first, at: 4))
            self = word + 8 + (word & 1) <= size ? .complete : .truncated
        } else if first.starts(with: Array("BM".utf8)), first.count >= 6 {
            self = UInt64(Self.word(first, at: 2)) <= size ? .complete : .truncated
        } else {
            self = .unknown
        }
    }

    private static func word(_ bytes: [UInt8], at index: Int) -> UInt32 {
        UInt32(bytes[index]) | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2]) << 16
            | UInt32(bytes[index + 3]) << 24
    }
}
