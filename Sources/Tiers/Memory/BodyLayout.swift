/// How a body is cut into chunks of memory (DESIGN.md §6): full chunks of 64 KiB, then the tail.
///
/// The allocator rounds every request up to a power of two, so a tail in one piece could waste
/// almost half of its memory. It is cut into at most three powers of two instead, unless one piece
/// wastes next to nothing.
package enum BodyLayout {
    /// Bytes of a full chunk.
    package static let chunkBytes = 65_536
    /// No piece is smaller.
    package static let pieceBytesMin = 64
    /// The tail is in at most this many pieces.
    package static let tailPiecesMax = 3

    /// A longer body, which no machine can hold, counts as this long: more than any limit allows,
    /// and still far from where sums of it overflow.
    package static let bodyBytesMax: UInt64 = 1 << 60

    /// The capacities of the tail's pieces, in order; the last may be filled in part.
    ///
    /// - Precondition: `tailBytes` is less than ``chunkBytes``.
    package static func tail(_ tailBytes: Int) -> [Int] {
        precondition((0..<chunkBytes).contains(tailBytes), "no tail: \(tailBytes) bytes")
        var pieces: [Int] = []
        var rest = tailBytes
        while rest > 0 {
            let whole = max(pieceBytesMin, roundedUp(rest))
            let isWorthCutting = whole - rest > max(256, rest / 16)
            if pieces.count == tailPiecesMax - 1 || !isWorthCutting {
                pieces.append(whole)
                break
            }
            pieces.append(whole / 2)
            rest -= whole / 2
        }
        return pieces.reduce(0, +) >= roundedUp(tailBytes) && tailBytes > 0
            ? [max(pieceBytesMin, roundedUp(tailBytes))] : pieces
    }

    /// Bytes of memory that the chunks of a body take; of any length that an origin may claim.
    package static func capacity(_ bodyBytes: UInt64) -> Int {
        let bytes = Int(min(bodyBytes, bodyBytesMax))
        return bytes / chunkBytes * chunkBytes + tail(bytes % chunkBytes).reduce(0, +)
    }

    /// The least power of two that is not less than `bytes`.
    private static func roundedUp(_ bytes: Int) -> Int {
        var power = 1
        while power < bytes { power <<= 1 }
        return power
    }
}
