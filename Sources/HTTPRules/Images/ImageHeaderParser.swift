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
