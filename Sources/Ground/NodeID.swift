/// The 128-bit id of a node, drawn once and kept in its directory.
///
/// A node without a directory draws an id at each start. The upper half of a named node's id is a
/// hash of its name, so that other nodes recognise a node that replaces one after losing its
/// directory.
package struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The lower 64 bits, random.
    package let low: UInt64
    /// The upper 64 bits: a hash of the node's name, or random.
    package let high: UInt64

    /// Length of an id in bytes.
    package static let bytesCount = 16

    /// Creates an id from its two halves.
    package init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Draws a random id.
    ///
    /// - Parameter dice: the system's generator in a node, a seeded one in a simulation.
    package init(using dice: inout some RandomNumberGenerator) {
        low = dice.next()
        high = dice.next()
    }

    /// Draws an id for a node with the name that the operator configured.
    ///
    /// - Parameters:
    ///   - name: the configured name, or ``directoryName`` for the last component of `path`. If
    ///     there is no name, the upper half is random.
    ///   - path: the node's directory; `nil` if it has none.
    ///   - dice: the generator for the random bits.
    package init(
        named name: String?, in path: String?, using dice: inout some RandomNumberGenerator
    ) {
        let directory = path?.split(separator: "/").last.map(String.init)
        let name = name == Self.directoryName ? directory : name
        self.init(
            low: dice.next(),
            high: name.map { XXH64.hash(Array($0.utf8).span, seed: Self.nameSeed) }
                ?? dice.next())
    }

    /// The configured name that means "use the name of the node's directory".
    package static let directoryName = "@directory"

    private static let nameSeed: UInt64 = 0x6E75_7468_6174_6368

    /// True if both nodes have the same configured name or are the same node; false for ids whose
    /// upper half is 0.
    package func hasSameName(as other: NodeID) -> Bool { high == other.high && high != 0 }

    /// Reads the id in the 16 bytes at `offset`, in little-endian order.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        low = bytes.little64(at: offset)
        high = bytes.little64(at: offset + 8)
    }

    /// Parses 32 lower-case hexadecimal digits as ``description`` returns them; `nil` for any other
    /// text.
    package init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 32, let number = digits.span.hexadecimal(at: 0..<32) else {
            return nil
        }
        self.init(low: UInt64(truncatingIfNeeded: number), high: UInt64(number >> 64))
    }

    /// Orders ids as 128-bit numbers.
    package static func < (left: NodeID, right: NodeID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The id as 32 lower-case hexadecimal digits, the highest first.
    package var description: String { hexadecimal(high) + hexadecimal(low) }
}

extension [UInt8] {
    /// Appends the 16 bytes of `id` in little-endian order.
    package mutating func append(_ id: NodeID) {
        appendLittle(id.low)
        appendLittle(id.high)
    }
}

/// Returns `word` as 16 lower-case hexadecimal digits.
package func hexadecimal(_ word: UInt64) -> String {
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
