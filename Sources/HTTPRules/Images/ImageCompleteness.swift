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
