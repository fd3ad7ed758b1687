import Ground

/// A parser of one format's header that reads field by field and only forwards.
///
/// A parser requests ranges of bytes and receives exactly these, regardless of how the network
/// split them. It therefore buffers nothing, skips what it does not need, and cannot read out of
/// bounds.
protocol ImageHeaderParser: Sendable {
    /// The format being parsed, as far as it is known.
    var format: ImageFormat { get }
    /// Returns true if the file may be declared as this format.
    func matches(_ declared: ImageFormat) -> Bool
    /// The offsets in the body of the bytes required next; never empty, never below an earlier
    /// range.
    var neededRange: Range<Int> { get }
    /// Parses the bytes in ``neededRange``; returns `nil` if more are required.
    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome?
    /// The outcome if the body ends before ``neededRange``.
    var endOfBodyOutcome: ImageHeaderOutcome { get }
}

extension ImageHeaderParser {
    func matches(_ declared: ImageFormat) -> Bool { declared == format }

    var endOfBodyOutcome: ImageHeaderOutcome { .unreadable }
}

/// The outcome of parsing a header.
enum ImageHeaderOutcome: Hashable, Sendable {
    /// The header was parsed; `nil` for a format without a size in pixels.
    case size(PixelSize?)
    /// The header violates its format's rules or is truncated.
    case unreadable
    /// The file has another format that begins alike.
    case otherFormat

    /// Returns the size with these sides, or ``unreadable`` if a side is 0.
    static func sides(_ width: UInt32, _ height: UInt32) -> ImageHeaderOutcome {
        PixelSize(width: width, height: height).map { .size($0) } ?? .unreadable
    }
}

extension Span<UInt8> {
    /// Returns the big-endian 16-bit number at `offset`.
    func big16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    /// Returns the big-endian 32-bit number at `offset`.
    func big32(at offset: Int) -> UInt32 {
        UInt32(big16(at: offset)) << 16 | UInt32(big16(at: offset + 2))
    }

    /// Returns the big-endian 64-bit number at `offset`.
    func big64(at offset: Int) -> UInt64 {
        UInt64(big32(at: offset)) << 32 | UInt64(big32(at: offset + 4))
    }

    /// Returns true if these bytes are present at `offset`.
    func hasPrefix(with bytes: [UInt8], at offset: Int = 0) -> Bool {
        guard bytes.count <= count - offset else { return false }
        for index in bytes.indices where self[offset + index] != bytes[index] { return false }
        return true
    }

    /// Returns true if the bytes of this text are present at `offset`.
    func hasPrefix(with text: String, at offset: Int = 0) -> Bool {
        guard text.utf8.count <= count - offset else { return false }
        return matches(text, at: offset..<offset + text.utf8.count)
    }
}

/// The parser of a GIF's logical screen and first frame (GIF89a §18, §20).
///
/// Decoders enlarge the screen for a first frame that does not fit it, so both count.
struct GIFHeader: ImageHeaderParser {
    let format = ImageFormat.gif
    private(set) var neededRange = 6..<13
    private var state = State.screen
    private var width: UInt32 = 0
    private var height: UInt32 = 0

    private enum State {
        case screen
        /// Expects the byte that introduces a block.
        case block
        /// Expects the label of an extension.
        case label
        /// Expects the size of a sub-block of an extension; 0 ends the extension.
        case part
        /// Expects the position and size of a frame.
        case frame
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .screen:
            (width, height) = (UInt32(field.little16(at: 0)), UInt32(field.little16(at: 2)))
            let flags = field[4]
            need(1, at: flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1), .block)
        case .block:
            switch field[0] {
            case 0x21: need(1, at: 0, .label)
            case 0x2C: need(8, at: 0, .frame)
            default: return .unreadable
            }
        case .label:
            need(1, at: 0, .part)
        case .part:
            need(1, at: Int(field[0]), field[0] == 0 ? .block : .part)
        case .frame:
            let right = UInt32(field.little16(at: 0)) + UInt32(field.little16(at: 4))
            let bottom = UInt32(field.little16(at: 2)) + UInt32(field.little16(at: 6))
            guard field.little16(at: 4) > 0, field.little16(at: 6) > 0 else { return .unreadable }
            return .sides(max(width, right), max(height, bottom))
        }
        return nil
    }

    /// Requests `count` bytes, `distance` bytes after the previous ones.
    private mutating func need(_ count: Int, at distance: Int, _ state: State) {
        let start = neededRange.upperBound + distance
        neededRange = start..<start + count
        self.state = state
    }
}

/// The parser of a WebP's first chunk (RFC 9649 §2): a lossy image (RFC 6386 §9.1), a lossless one
/// (§3.4), or the canvas that all later chunks must fit (§2.7).
struct WebPHeader: ImageHeaderParser {
    let format = ImageFormat.webp
    private(set) var neededRange = 12..<20
    private var kind = Kind.unknown

    private enum Kind {
        case unknown
        case lossy
        case lossless
        case extended
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch kind {
        case .unknown: return consumeChunk(field)
        case .lossy:
            // The frame must be a key frame, and have its start code.
            guard field[0] & 1 == 0, field.hasPrefix(with: [0x9D, 0x01, 0x2A], at: 3) else {
                return .unreadable
            }
            return .sides(
                UInt32(field.little16(at: 6) & 0x3FFF), UInt32(field.little16(at: 8) & 0x3FFF))
        case .lossless:
            let bits = field.little32(at: 1)
            guard field[0] == 0x2F, bits >> 29 == 0 else { return .unreadable }
            return .sides((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case .extended:
            return .sides(Self.little24(field, at: 4) + 1, Self.little24(field, at: 7) + 1)
        }
    }

    private mutating func consumeChunk(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        let needed: UInt32
        if field.hasPrefix(with: "VP8 ") {
            (kind, needed) = (.lossy, 10)
        } else if field.hasPrefix(with: "VP8L") {
            (kind, needed) = (.lossless, 5)
        } else if field.hasPrefix(with: "VP8X") {
            (kind, needed) = (.extended, 10)
        } else {
            return .unreadable
        }
        guard field.little32(at: 4) >= needed else { return .unreadable }
        neededRange = 20..<20 + Int(needed)
        return nil
    }

    private static func little24(_ field: Span<UInt8>, at offset: Int) -> UInt32 {
        UInt32(field.little16(at: offset)) | UInt32(field[offset + 2]) << 16
    }
}
