/// A block of addresses with a common prefix, as address and prefix length (RFC 4632 §3.1, RFC 4291
/// §2.3).
///
/// A block inside ::ffff:0:0/96 is stored as the IPv4 block it maps, so that both spellings are
/// equal.
package struct Network: Hashable, Sendable {
    /// The first address; bits beyond ``prefixLength`` are zero.
    package let first: IPAddress
    /// The number of leading bits that all addresses of the block share: 0 to 32 or 0 to 128.
    package let prefixLength: Int

    /// The reason why a text is not a valid network.
    package enum Problem: Error, Hashable, Sendable {
        /// The text is not `ADDRESS` or `ADDRESS/BITS`.
        case malformed
        /// Bits beyond the prefix are set; `meant` is the network with these bits cleared.
        case hostBitsSet(meant: String)
    }

    /// Parses `10.0.0.0/8`, `fd00::/8`, or a bare address, which is a block of one address.
    ///
    /// - Throws: ``Problem`` with the reason if the text is invalid.
    package init(parsing text: String) throws(Problem) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else { throw .malformed }
        var length = address.bitCount
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count),
                parts[1].utf8.allSatisfy(ASCII.isDigit),
                let number = Int(parts[1]), number <= address.bitCount
            else { throw .malformed }
            length = number
        }
        let masked = Self.masked(address, length)
        guard address == masked else { throw .hostBitsSet(meant: "\(masked)/\(length)") }
        if case .v4 = address.unmapped, address.bitCount == 128, length >= 96 {
            first = address.unmapped
            prefixLength = length - 96
        } else {
            first = address
            prefixLength = length
        }
    }

    /// Creates the block of `prefixLength` bits that contains `address`; for constants in source
    /// that are not IPv4-mapped.
    package init(_ address: IPAddress, _ prefixLength: Int) {
        first = Self.masked(address, prefixLength)
        self.prefixLength = prefixLength
    }

    /// Returns true if `address` lies in the block.
    ///
    /// An IPv4-mapped address counts only as the IPv4 address that it maps, so no IPv6 block
    /// contains it, not even ::/0.
    package func contains(_ address: IPAddress) -> Bool {
        Self.masked(address.unmapped, prefixLength) == first
    }

    private static func masked(_ address: IPAddress, _ length: Int) -> IPAddress {
        switch address {
        case .v4(let number): .v4(number & ~0 << UInt32(max(0, 32 - length)))
        case .v6(let number): .v6(number & ~0 << UInt128(max(0, 128 - length)))
        }
    }
}

extension Network: CustomStringConvertible {
    /// The block as `ADDRESS/BITS`.
    package var description: String { "\(first)/\(prefixLength)" }
}
