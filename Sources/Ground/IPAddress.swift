/// An IPv4 or IPv6 address as a number, without port and without zone.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes in network order, the first in the highest bits.
    case v4(UInt32)
    /// The sixteen bytes in network order, the first in the highest bits.
    case v6(UInt128)

    /// Four or sixteen bytes in network order; nil for any other count.
    package init?(_ bytes: Span<UInt8>) {
        var number: UInt128 = 0
        for index in 0..<bytes.count { number = number << 8 | UInt128(bytes[index]) }
        switch bytes.count {
        case 4: self = .v4(UInt32(truncatingIfNeeded: number))
        case 16: self = .v6(number)
        default: return nil
        }
    }

    /// The IPv4 address if this is an IPv4-mapped IPv6 address (::ffff:0:0/96, RFC 4291 §2.5.5.2);
    /// otherwise unchanged.
    package var unmapped: IPAddress {
        guard case .v6(let number) = self, number >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: number))
    }

    /// What one client is known by: an IPv4 address, or the /64 of an IPv6 one, all of whose
    /// addresses are usually one client's.
    package var clientPrefix: UInt128 {
        switch unmapped {
        case .v4(let number): UInt128(number)
        case .v6(let number): (number >> 64) << 64
        }
    }

    /// Number of bits: 32 or 128.
    package var bitCount: Int {
        if case .v4 = self { 32 } else { 128 }
    }

    /// 127.0.0.0/8 or `::1`; the mapped form of the former is an IPv6 address, and none.
    package var isLoopback: Bool {
        switch self {
        case .v4(let number): number >> 24 == 127
        case .v6(let number): number == 1
        }
    }
}
