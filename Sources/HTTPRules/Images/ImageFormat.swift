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
