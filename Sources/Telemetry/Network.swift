/// A block of addresses (CIDR, RFC 4632 §3.1): all that share a prefix.
package struct Network: Hashable, Sendable, CustomStringConvertible {
    /// The first address; every bit past the prefix is zero.
    package let base: IPAddress
    /// The number of leading bits that count: 0 to 32 or 128.
    package let prefixBits: Int

    /// Why a text is no network.
    package enum Problem: Error, Hashable {
        /// The text is not `ADDRESS` or `ADDRESS/BITS`.
        case malformed
        /// Bits past the prefix are set; the network that was perhaps meant.
        case hostBitsSet(meant: String)
    }

    /// The network in `text`: `10.0.0.0/8`, `fd00::/8`, or one address alone.
    package init(parsing text: String) throws(Problem) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let address = IPAddress(String(first)), parts.count <= 2
        else { throw .malformed }
        let width = address.family.bitWidth
        let prefixBits = parts.count == 1 ? width : Self.prefix(parts[1])
        guard let prefixBits, prefixBits <= width else { throw .malformed }
        let base = IPAddress(
            family: address.family, bits: address.bits & Self.mask(prefixBits, of: width))
        guard base == address else {
            throw .hostBitsSet(meant: "\(base)/\(prefixBits)")
        }
        self.base = base
        self.prefixBits = prefixBits
    }

    /// True if `address` is of the same family and shares the prefix.
    ///
    /// An IPv4 address mapped into IPv6 is an IPv6 address here.
    package func contains(_ address: IPAddress) -> Bool {
        let mask = Self.mask(prefixBits, of: base.family.bitWidth)
        return address.family == base.family && address.bits & mask == base.bits
    }

    package var description: String { "\(base)/\(prefixBits)" }

    private static func prefix(_ text: Substring) -> Int? {
        guard (1...3).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int(text)
    }

    private static func mask(_ prefixBits: Int, of width: Int) -> UInt128 {
        (UInt128.max << UInt128(width - prefixBits)) & (UInt128.max >> UInt128(128 - width))
    }
}
