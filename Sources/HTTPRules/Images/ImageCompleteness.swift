/// Whether an image ends as its format says: the only sign of a cut for a body that its
/// connection's end delimits.
///
/// Looks at the first and the last bytes alone; a file may be damaged inside and still end well.
package enum ImageCompleteness: Hashable, Sendable {
    /// It ends as its format says.
    case complete
    /// Its format says that something is missing.
    case truncated
    /// The end of its format cannot be told (AVIF, SVG and others), so that it cannot be known to
    /// be whole.
    case unknown

    /// Bytes of either end that are looked at.
    package static let edgeBytes = 16

    /// Judges a body.
    ///
    /// - Parameters:
    ///   - first: the first ``edgeBytes`` of the body, or all of it.
    ///   - last: the last ``edgeBytes``, or all of it.
    ///   - size: length of the body in bytes.
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
            // RIFF's size counts what follows it, padded to an even number.
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
