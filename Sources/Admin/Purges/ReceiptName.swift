import Ground

/// Names the receipt of a purge, at every node the same: the process that issued it and its number
/// in that process's stream; `0123456789abcdef0123456789abcdef-17` as text.
package struct ReceiptID: Hashable, Sendable, CustomStringConvertible {
    /// The 128 bits of the process id.
    package let high: UInt64
    package let low: UInt64
    /// From 1.
    package let number: UInt64

    package init(high: UInt64, low: UInt64, number: UInt64) {
        self.high = high
        self.low = low
        self.number = number
    }

    /// The name that `text` spells; nil if it is none.
    ///
    /// A name has one spelling: lower case, and no leading zeros in its number.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count > 33, bytes.count <= 33 + 20, bytes[32] == UInt8(ascii: "-"),
            bytes[33] != UInt8(ascii: "0"), let number = bytes.span.decimal(at: 33..<bytes.count)
        else { return nil }
        var words: [UInt64] = [0, 0]
        for index in 0..<32 {
            guard let digit = ASCII.hexValue(bytes[index]),
                bytes[index] == ASCII.hexDigit(digit)
            else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(digit)
        }
        self.init(high: words[0], low: words[1], number: number)
    }

    static let schema = JSONSchema.text(pattern: "^[0-9a-f]{32}-[1-9][0-9]{0,18}$")

    package var description: String { hexadecimal(high) + hexadecimal(low) + "-\(number)" }
}
