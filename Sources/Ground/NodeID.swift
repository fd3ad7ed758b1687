/// Names a node for as long as its directory lives: 128 bits, drawn once.
///
/// A node without a directory draws one at each start. The upper half of a named node's id is a
/// hash of its name, so that others see in whose place a node comes that has lost its directory.
package struct NodeID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let low: UInt64
    package let high: UInt64

    /// Size in bytes.
    package static let bytesCount = 16

    package init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Draws an id; `dice` is the system's generator in a node and a seeded one in a simulation.
    package init(using dice: inout some RandomNumberGenerator) {
        low = dice.next()
        high = dice.next()
    }

    /// Draws an id for a node that the operator calls `name`, or not at all.
    ///
    /// ``directoryName`` stands for the last name in `path`, that of the node's directory.
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

    /// What the operator calls nodes of which each is to go by its directory.
    package static let directoryName = "@directory"

    private static let nameSeed: UInt64 = 0x6E75_7468_6174_6368

    /// True if the operator calls both nodes the same, or they are the same.
    package func hasSameName(as other: NodeID) -> Bool { high == other.high && high != 0 }

    /// The 16 bytes from `offset`, the lowest bits first.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        low = bytes.little64(at: offset)
        high = bytes.little64(at: offset + 8)
    }

    /// The id that 32 hexadecimal digits spell; nil if that are other than ``description`` gives.
    package init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 32 else { return nil }
        var words: [UInt64] = [0, 0]
        for (index, digit) in digits.enumerated() {
            guard let value = ASCII.hexValue(digit), ASCII.hexDigit(value) == digit else {
                return nil
            }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.init(low: words[1], high: words[0])
    }

    /// By the number of 128 bits.
    package static func < (left: NodeID, right: NodeID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// 32 lower-case hexadecimal digits, the highest first.
    package var description: String { hexadecimal(high) + hexadecimal(low) }
}

extension [UInt8] {
    /// Appends the 16 bytes of `id`, the lowest bits first.
    package mutating func append(_ id: NodeID) {
        appendLittle(id.low)
        appendLittle(id.high)
    }
}

/// 16 lower-case hexadecimal digits.
package func hexadecimal(_ word: UInt64) -> String {
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
