import Ground
import HTTPRules

/// An IPv4 or IPv6 address as a number, without port and without zone.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes in network order, the first in the highest bits.
    case v4(UInt32)
    /// The sixteen bytes in network order, in two halves.
    case v6(high: UInt64, low: UInt64)

    /// Four or sixteen bytes in network order; nil for any other count.
    package init?(_ bytes: Span<UInt8>) {
        switch bytes.count {
        case 4: self = .v4(UInt32(truncatingIfNeeded: Self.number(bytes, 0..<4)))
        case 16: self = .v6(high: Self.number(bytes, 0..<8), low: Self.number(bytes, 8..<16))
        default: return nil
        }
    }

    /// Dotted decimal (four parts, no leading zeros) or RFC 4291 §2.2 text without brackets and
    /// zone; nil otherwise.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        if let number = HostName.ipv4(bytes.span, at: 0..<bytes.count) {
            self = .v4(number)
        } else if let address = IPv6Address(bytes.span, at: 0..<bytes.count) {
            self = .v6(high: address.high, low: address.low)
        } else {
            return nil
        }
    }

    /// The IPv4 address if this is an IPv4-mapped IPv6 address (::ffff:0:0/96); otherwise
    /// unchanged.
    package var unmapped: IPAddress {
        guard case .v6(0, let low) = self, low >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: low))
    }

    /// Number of bits: 32 or 128.
    package var bitCount: Int {
        if case .v4 = self { 32 } else { 128 }
    }

    private static func number(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        var number: UInt64 = 0
        for index in range { number = number << 8 | UInt64(bytes[index]) }
        return number
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimal, or the canonical text of RFC 5952.
    package var description: String {
        switch self {
        case .v4(let number):
            return [24, 16, 8, 0].map { String(number >> UInt32($0) & 0xFF) }
                .joined(separator: ".")
        case .v6(let high, let low):
            var text: [UInt8] = []
            IPv6Address(high: high, low: low).append(to: &text)
            return String(decoding: text, as: UTF8.self)
        }
    }
}
