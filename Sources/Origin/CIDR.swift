/// A range of addresses written as address and prefix length (RFC 4632 §3.1, RFC 4291 §2.3).
///
/// A range inside ::ffff:0:0/96 is kept as the IPv4 range it maps, so that both spellings mean the
/// same.
package struct CIDR: Hashable, Sendable {
    /// The first address; bits past ``prefixLength`` are zero.
    package let network: IPAddress
    /// Number of leading bits that all addresses of the range share.
    package let prefixLength: Int

    /// `10.0.0.0/8`, `fd00::/8`, or a bare address, which is the range of that address alone.
    package init(_ text: String) throws(CIDRError) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else {
            throw .notAnAddress(text)
        }
        var length = address.bitCount
        if parts.count == 2 {
            guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
                let number = Int(parts[1]), number <= address.bitCount
            else { throw .prefixLength(text, max: address.bitCount) }
            length = number
        }
        guard address == Self.masked(address, length) else {
            throw .bitsPastPrefix(text, network: "\(Self.masked(address, length))/\(length)")
        }
        if case .v4 = address.unmapped, address.bitCount == 128, length >= 96 {
            network = address.unmapped
            prefixLength = length - 96
        } else {
            network = address
            prefixLength = length
        }
    }

    /// For ranges written in source, which are known to be right.
    init(_ network: IPAddress, _ prefixLength: Int) {
        self.network = Self.masked(network, prefixLength)
        self.prefixLength = prefixLength
    }

    /// True if `address`, or the IPv4 address it maps, lies in the range.
    package func contains(_ address: IPAddress) -> Bool {
        Self.masked(address.unmapped, prefixLength) == network
    }

    private static func masked(_ address: IPAddress, _ length: Int) -> IPAddress {
        switch address {
        case .v4(let number):
            let mask: UInt32 = ~0 << UInt32(max(0, 32 - length))
            return .v4(number & mask)
        case .v6(let high, let low):
            let highMask: UInt64 = ~0 << UInt64(max(0, 64 - length))
            let lowMask: UInt64 = ~0 << UInt64(min(64, 128 - length))
            return .v6(high: high & highMask, low: low & lowMask)
        }
    }
}

extension CIDR: CustomStringConvertible {
    package var description: String { "\(network)/\(prefixLength)" }
}

/// Why a text names no range of addresses; each case carries the text.
package enum CIDRError: Error, Hashable, Sendable {
    case notAnAddress(String)
    case prefixLength(String, max: Int)
    case bitsPastPrefix(String, network: String)
}

extension CIDRError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notAnAddress(let text):
            "'\(text)' is no address range; allowed are forms like 10.0.0.0/8, fd00::/8, 127.0.0.1"
        case .prefixLength(let text, let max):
            "'\(text)' has a wrong prefix length; allowed is 0 to \(max)"
        case .bitsPastPrefix(let text, let network):
            "'\(text)' has bits set past its prefix; the range is written \(network)"
        }
    }
}
