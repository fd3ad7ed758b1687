import Ground

/// Reads the header of one format, field by field and only forwards.
///
/// A reader says which bytes it wants and is given exactly these, however the network has cut them.
/// So it holds no bytes, passes over what it does not want, and cannot read past what there is.
protocol ImageHeaderParser: Sendable {
    /// The format that is read, as far as it is known.
    var format: ImageFormat { get }
    /// Whether the file, of which the format is known, may be said to be of this one.
    func matches(_ declared: ImageFormat) -> Bool
    /// Offsets in the body of the bytes wanted next; never empty, never below those given before.
    var neededRange: Range<Int> { get }
    /// Takes the bytes that were wanted; nil if it wants more.
    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome?
    /// The body ended before the bytes that are wanted.
    var endOfBodyOutcome: ImageHeaderOutcome { get }
}

extension ImageHeaderParser {
    func matches(_ declared: ImageFormat) -> Bool { declared == format }

    var endOfBodyOutcome: ImageHeaderOutcome { .unreadable }
}

/// What the reading of a header came to.
enum ImageHeaderOutcome: Hashable, Sendable {
    /// Nil for a format without a size in pixels.
    case size(PixelSize?)
    /// The header breaks its format's rules, or is cut.
    case unreadable
    /// It is a file of another kind that begins alike.
    case otherFormat

    /// The size with these sides, or ``unreadable`` without a pixel.
    static func sides(_ width: UInt32, _ height: UInt32) -> ImageHeaderOutcome {
        PixelSize(width: width, height: height).map { .size($0) } ?? .unreadable
    }
}

extension Span<UInt8> {
    /// The two bytes from `offset`, the first in the highest bits.
    func big16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    /// The four bytes from `offset`, the first in the highest bits.
    func big32(at offset: Int) -> UInt32 {
        UInt32(big16(at: offset)) << 16 | UInt32(big16(at: offset + 2))
    }

    /// The eight bytes from `offset`, the first in the highest bits.
    func big64(at offset: Int) -> UInt64 {
        UInt64(big32(at: offset)) << 32 | UInt64(big32(at: offset + 4))
    }

    /// True if the bytes from `offset` are these, and are there.
    func hasPrefix(with bytes: [UInt8], at offset: Int = 0) -> Bool {
        guard bytes.count <= count - offset else { return false }
        for index in bytes.indices where self[offset + index] != bytes[index] { return false }
        return true
    }

    /// True if the bytes from `offset` are those of this text, and are there.
    func hasPrefix(with text: String, at offset: Int = 0) -> Bool {
        guard text.utf8.count <= count - offset else { return false }
        return matches(text, at: offset..<offset + text.utf8.count)
    }
}
