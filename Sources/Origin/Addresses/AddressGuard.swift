package import Ground

/// A guard that decides which addresses may be connected to: globally reachable ones, and those
/// in ranges that the operator allows.
///
/// Unless the operator allows them, it refuses multicast, the IANA special-purpose ranges
/// (RFC 6890) that are not globally reachable, IPv6 addresses outside 2000::/3 (RFC 4291 §2.4),
/// and every IPv6 form that embeds a refused IPv4 address. 192.0.0.0/24 and, apart from Teredo,
/// 2001::/23 are refused as a whole. IPv4-mapped addresses and those in 64:ff9b::/96 are judged by
/// the IPv4 address alone. Network-specific NAT64 prefixes (RFC 6052 §2.2) look like any other
/// address and cannot be detected.
package struct AddressGuard: Sendable {
    /// Ranges allowed by the operator.
    ///
    /// An IPv4 range also allows its IPv4-mapped form, and no other embedding.
    package let allowedRanges: [Network]

    /// A guard that refuses nothing.
    package static let unrestricted = AddressGuard(allowing: [
        Network(.v4(0), 0), Network(.v6(0), 0),
    ])

    /// Creates a guard that refuses the special-purpose ranges except those in `opened`.
    package init(allowing opened: [Network] = []) {
        self.allowedRanges = opened
    }

    /// Returns whether `address` may be connected to, and if not, why.
    package func evaluate(_ address: IPAddress) -> AddressDecision {
        if allowedRanges.contains(where: { $0.contains(address) }) { return .allowed }
        switch address.unmapped {
        case .v4(let number):
            guard let range = SpecialPurposeRange(v4: number) else { return .allowed }
            let embedding: IPv4Embedding? = address.bitCount == 128 ? .mapped : nil
            return .refused(AddressRefusal(range: range, embedding: embedding))
        case .v6(let number):
            return evaluate(v6: number)
        }
    }

    /// Returns those of `addresses` that may be connected to, in their order.
    package func allowed(of addresses: [IPAddress]) -> [IPAddress] {
        addresses.filter { evaluate($0) == .allowed }
    }

    private func evaluate(v6 number: UInt128) -> AddressDecision {
        for (embedding, address) in IPv4Embedding.embeddedAddresses(in: number) {
            if let range = SpecialPurposeRange(v4: address) {
                return .refused(AddressRefusal(range: range, embedding: embedding))
            }
        }
        guard let range = SpecialPurposeRange(v6: number) else { return .allowed }
        return .refused(AddressRefusal(range: range, embedding: nil))
    }
}

/// The decision of an ``AddressGuard`` about one address.
package enum AddressDecision: Hashable, Sendable {
    case allowed
    case refused(AddressRefusal)
}

/// The reason why an address is refused.
package struct AddressRefusal: Hashable, Sendable {
    /// The special-purpose range that the address, or the IPv4 address embedded in it, lies in.
    package var range: SpecialPurposeRange
    /// How the refused IPv4 address is embedded.
    ///
    /// `nil` if the address itself lies in ``range``.
    package var embedding: IPv4Embedding?

    /// Creates a refusal from its parts.
    package init(range: SpecialPurposeRange, embedding: IPv4Embedding?) {
        self.range = range
        self.embedding = embedding
    }
}

extension AddressRefusal: CustomStringConvertible {
    /// The range by name and, if there is one, the embedding.
    package var description: String {
        guard let embedding else { return range.text }
        return "\(range.text), embedded in IPv6 as \(embedding.text)"
    }
}

/// A way to embed an IPv4 address in an IPv6 address.
package enum IPv4Embedding: Hashable, Sendable, CaseIterable {
    /// ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
    case mapped
    /// ::/96 (RFC 4291 §2.5.5.1, deprecated).
    case compatible
    /// ::ffff:0:0:0/96 (RFC 2765 §2.1, obsolete).
    case translated
    /// 64:ff9b::/96 (RFC 6052 §2.1).
    case nat64
    /// 2002::/16 (RFC 3056 §2).
    case sixToFour
    /// The server of a 2001::/32 address (RFC 4380 §4).
    case teredoServer
    /// The client of a 2001::/32 address, stored with every bit inverted (RFC 4380 §4).
    case teredoClient
    /// Interface identifier 0:5efe or 200:5efe under any prefix (RFC 5214 §6.1).
    case isatap

    /// The name of the form, for log lines and error messages.
    package var text: String {
        switch self {
        case .mapped: "IPv4-mapped"
        case .compatible: "IPv4-compatible"
        case .translated: "IPv4-translated"
        case .nat64: "NAT64"
        case .sixToFour: "6to4"
        case .teredoServer: "Teredo server"
        case .teredoClient: "Teredo client"
        case .isatap: "ISATAP"
        }
    }

    /// Returns the IPv4 addresses embedded in an IPv6 address that is not IPv4-mapped.
    static func embeddedAddresses(in number: UInt128) -> [(IPv4Embedding, UInt32)] {
        let high = UInt64(truncatingIfNeeded: number >> 64)
        let low = UInt64(truncatingIfNeeded: number)
        let lastWord = UInt32(truncatingIfNeeded: number)
        var found: [(IPv4Embedding, UInt32)] = []
        // :: and ::1 are IPv6 addresses in their own right.
        if high == 0, low >> 32 == 0, low > 1 { found.append((.compatible, lastWord)) }
        if high == 0, low >> 32 == 0xFFFF_0000 { found.append((.translated, lastWord)) }
        if high == 0x0064_FF9B_0000_0000, low >> 32 == 0 { found.append((.nat64, lastWord)) }
        if high >> 48 == 0x2002 {
            found.append((.sixToFour, UInt32(truncatingIfNeeded: high >> 16)))
        }
        if high >> 32 == 0x2001_0000 {
            found.append((.teredoServer, UInt32(truncatingIfNeeded: high)))
            found.append((.teredoClient, ~lastWord))
        }
        // The universal/local bit may be set or not.
        if low >> 32 & 0xFDFF_FFFF == 0x0000_5EFE { found.append((.isatap, lastWord)) }
        return found
    }
}

/// A range of addresses that no origin on the Internet has.
package enum SpecialPurposeRange: Hashable, Sendable, CaseIterable {
    /// 0.0.0.0/8 (RFC 791 §3.2), ::/128 (RFC 4291 §2.5.2).
    case unspecified
    /// 127.0.0.0/8 (RFC 1122 §3.2.1.3), ::1/128 (RFC 4291 §2.5.3).
    case loopback
    /// 10/8, 172.16/12, 192.168/16 (RFC 1918), fc00::/7 (RFC 4193), fec0::/10 (RFC 3879).
    case privateUse
    /// 100.64.0.0/10 (RFC 6598).
    case carrierGrade
    /// 169.254.0.0/16 (RFC 3927), fe80::/10 (RFC 4291 §2.5.6).
    case linkLocal
    /// 192.0.0.0/24 (RFC 6890), 2001::/23 apart from Teredo (RFC 2928).
    case protocolAssignments
    /// 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24 (RFC 5737), 2001:db8::/32 (RFC 3849),
    /// 3fff::/20 (RFC 9637).
    case documentation
    /// 192.88.99.0/24 (RFC 7526, deprecated).
    case sixToFourRelay
    /// 198.18.0.0/15 (RFC 2544), 2001:2::/48 (RFC 5180).
    case benchmarking
    /// 224.0.0.0/4 (RFC 5771), ff00::/8 (RFC 4291 §2.7).
    case multicast
    /// 240.0.0.0/4 (RFC 1112 §4), and all of IPv6 outside 2000::/3 that no other case covers.
    case reserved
    /// 255.255.255.255/32 (RFC 919 §7).
    case broadcast
    /// 64:ff9b:1::/48 (RFC 8215): only the network that uses it knows where the IPv4 address lies
    /// in it.
    case localTranslation
    /// 100::/64 (RFC 6666), 100:0:0:1::/64 (RFC 9780).
    case discardOnly
    /// 5f00::/16 (RFC 9602).
    case segmentRouting

    /// The name of the range, as used within a sentence.
    package var text: String {
        switch self {
        case .unspecified: "unspecified"
        case .loopback: "loopback"
        case .privateUse: "private"
        case .carrierGrade: "carrier-grade NAT"
        case .linkLocal: "link-local"
        case .protocolAssignments: "protocol assignments"
        case .documentation: "documentation"
        case .sixToFourRelay: "6to4 relay"
        case .benchmarking: "benchmarking"
        case .multicast: "multicast"
        case .reserved: "reserved"
        case .broadcast: "broadcast"
        case .localTranslation: "local-use NAT64"
        case .discardOnly: "discard-only"
        case .segmentRouting: "segment routing"
        }
    }

    /// Finds the special-purpose range that an IPv4 address lies in; `nil` for an ordinary address.
    init?(v4 address: UInt32) {
        guard let row = Self.v4Ranges.first(where: { $0.0.contains(.v4(address)) }) else {
            return nil
        }
        self = row.1
    }

    /// Finds the special-purpose range that an IPv6 address, not an IPv4-mapped one, lies in.
    ///
    /// `nil` for an ordinary address. Embedded addresses are checked with ``IPv4Embedding``; forms
    /// that have no other meaning than the address they embed count as ordinary here.
    init?(v6 number: UInt128) {
        let address = IPAddress.v6(number)
        if Self.v6Exceptions.contains(where: { $0.contains(address) }) { return nil }
        if let row = Self.v6Ranges.first(where: { $0.0.contains(address) }) {
            self = row.1
        } else if number >> 125 == 0b001 {
            return nil
        } else {
            self = .reserved
        }
    }

    private static func v4(_ a: UInt32, _ b: UInt32, _ c: UInt32, _ length: Int) -> Network {
        Network(.v4(a << 24 | b << 16 | c << 8), length)
    }

    private static func v6(_ upperHalf: UInt64, _ length: Int) -> Network {
        Network(.v6(UInt128(upperHalf) << 64), length)
    }

    /// The IPv4 ranges; a more specific one precedes the range that contains it.
    private static let v4Ranges: [(Network, SpecialPurposeRange)] = [
        (v4(0, 0, 0, 8), .unspecified),
        (v4(10, 0, 0, 8), .privateUse),
        (v4(100, 64, 0, 10), .carrierGrade),
        (v4(127, 0, 0, 8), .loopback),
        (v4(169, 254, 0, 16), .linkLocal),
        (v4(172, 16, 0, 12), .privateUse),
        (v4(192, 0, 0, 24), .protocolAssignments),
        (v4(192, 0, 2, 24), .documentation),
        (v4(192, 88, 99, 24), .sixToFourRelay),
        (v4(192, 168, 0, 16), .privateUse),
        (v4(198, 18, 0, 15), .benchmarking),
        (v4(198, 51, 100, 24), .documentation),
        (v4(203, 0, 113, 24), .documentation),
        (v4(224, 0, 0, 4), .multicast),
        (Network(.v4(0xFFFF_FFFF), 32), .broadcast),
        (v4(240, 0, 0, 4), .reserved),
    ]

    /// Ranges decided by the addresses embedded in them: Teredo and the well-known NAT64 prefix.
    private static let v6Exceptions: [Network] = [
        v6(0x2001_0000_0000_0000, 32),
        v6(0x0064_FF9B_0000_0000, 96),
    ]

    /// The IPv6 ranges; a more specific one precedes the range that contains it.
    private static let v6Ranges: [(Network, SpecialPurposeRange)] = [
        (v6(0, 128), .unspecified),
        (Network(.v6(1), 128), .loopback),
        (v6(0x0064_FF9B_0001_0000, 48), .localTranslation),
        (v6(0x0100_0000_0000_0000, 63), .discardOnly),
        (v6(0x2001_0002_0000_0000, 48), .benchmarking),
        (v6(0x2001_0000_0000_0000, 23), .protocolAssignments),
        (v6(0x2001_0DB8_0000_0000, 32), .documentation),
        (v6(0x3FFF_0000_0000_0000, 20), .documentation),
        (v6(0x5F00_0000_0000_0000, 16), .segmentRouting),
        (v6(0xFC00_0000_0000_0000, 7), .privateUse),
        (v6(0xFEC0_0000_0000_0000, 10), .privateUse),
        (v6(0xFE80_0000_0000_0000, 10), .linkLocal),
        (v6(0xFF00_0000_0000_0000, 8), .multicast),
    ]
}
