/// The division of a body into chunks of memory (Design, "Memory tier"): full chunks of 64 KiB,
/// then the tail.
///
/// The allocator rounds every request up to a power of two, so a tail in one piece could waste
/// almost half of its memory. It is divided into at most three powers of two, unless one piece
/// wastes almost nothing.
package enum BodyLayout {
    /// The size of a full chunk in bytes.
    package static let chunkBytes = 65_536
    /// The smallest piece in bytes.
    package static let pieceBytesMin = 64
    /// The maximum number of pieces of the tail.
    package static let tailPiecesMax = 3

    /// The length in bytes at which body lengths saturate: more than any limit allows, yet small
    /// enough that sums do not overflow.
    package static let bodyBytesMax: UInt64 = 1 << 60

    /// Returns the capacities of the tail's pieces in bytes, in order; the last may be partly
    /// filled.
    ///
    /// - Precondition: `tailBytes` is less than ``chunkBytes``.
    package static func tail(_ tailBytes: Int) -> [Int] {
        let cut = cut(tailBytes)
        return (0..<cut.count).map { cut.capacities[$0] }
    }

    /// Returns the capacities of the tail's pieces as in ``tail(_:)``, followed by zeros, and the
    /// number of pieces.
    private static func cut(
        _ tailBytes: Int
    ) -> (capacities: InlineArray<3, Int>, count: Int) {
        precondition((0..<chunkBytes).contains(tailBytes), "no tail: \(tailBytes) bytes")
        var capacities = InlineArray<3, Int>(repeating: 0)
        var (count, sum) = (0, 0)
        while sum < tailBytes {
            let rest = tailBytes - sum
            let whole = max(pieceBytesMin, roundedUp(rest))
            let isWorthCutting = whole - rest > max(256, rest / 16)
            capacities[count] = isWorthCutting && count < tailPiecesMax - 1 ? whole / 2 : whole
            sum += capacities[count]
            count += 1
        }
        let whole = max(pieceBytesMin, roundedUp(tailBytes))
        return count > 1 && sum >= whole ? ([whole, 0, 0], 1) : (capacities, count)
    }

    /// Returns the bytes of memory for all chunks of a body; longer bodies than ``bodyBytesMax``
    /// count as that long.
    package static func capacity(_ bodyBytes: UInt64) -> Int {
        let bytes = Int(min(bodyBytes, bodyBytesMax))
        let (chunks, tailBytes) = bytes.quotientAndRemainder(dividingBy: chunkBytes)
        let capacities = cut(tailBytes).capacities
        return chunks * chunkBytes + capacities[0] + capacities[1] + capacities[2]
    }

    /// Returns the least power of two that is not less than `bytes`.
    private static func roundedUp(_ bytes: Int) -> Int {
        var power = 1
        while power < bytes { power <<= 1 }
        return power
    }
}
