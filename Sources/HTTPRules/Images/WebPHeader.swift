import Ground

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
