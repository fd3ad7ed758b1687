package import Ground

/// Decides which addresses may be connected to: what is globally reachable, and ranges the operator
/// opened.
///
/// The refused ranges are those of the IANA special-purpose address registries (RFC 6890) that are
/// not globally reachable, everything of IPv6 outside 2000::/3 (RFC 4291 §2.4), and every IPv6 form
/// that embeds a refused IPv4 address. Network-specific NAT64 prefixes (RFC 6052 §2.2) look like
/// any other address and cannot be told apart.
package struct AddressGuard: Sendable {
    /// Ranges opened by the operator; an IPv4 range opens the mapped form too, and no other
    /// embedding.
    package let allowedRanges: [Network]

    /// A guard that refuses nothing.
    package static let unrestricted = AddressGuard(allowing: [
        Network(.v4(0), 0), Network(.v6(0), 0),
    ])

    /// A guard that refuses the special ranges except those `opened`.
    package init(allowing opened: [Network] = []) {
        self.allowedRanges = opened
    }

    /// Whether `address` may be connected to.
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

    /// The addresses of `addresses` that may be connected to, in their order.
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

/// What ``AddressGuard`` says of an address.
package enum AddressDecision: Hashable, Sendable {
    case allowed
    case refused(AddressRefusal)
}

/// Why an address is refused.
package struct AddressRefusal: Hashable, Sendable {
    package var range: SpecialPurposeRange
    /// How the refused IPv4 address is embedded; nil if the address itself lies in ``range``.
    package var embedding: IPv4Embedding?

    package init(range: SpecialPurposeRange, embedding: IPv4Embedding?) {
        self.range = range
        self.embedding = embedding
    }
}

extension AddressRefusal: CustomStringConvertible {
    package var description: String {
        guard let embedding else { return range.text }
        return "\(range.text), embedded in IPv6 as \(embedding.text)"
    }
}

/// A way to write an IPv4 address inside an IPv6 address.
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

    /// The name of the form.
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

    /// The IPv4 addresses that an IPv6 address, not a mapped one, embeds.
    static func embeddedAddresses(in number: UInt128) -> [(IPv4Embedding, UInt32)] {
        let high = UInt64(truncatingIfNeeded: number >> 64)
        let low = UInt64(truncatingIfNeeded: number)
        let lastWord = UInt32(truncatingIfNeeded: number)
        var found: [(IPv4Embedding, UInt32)] = []
        // :: and ::1 are addresses of IPv6 in their own right.
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
        // The universal bit may be set or not.
        if low >> 32 & 0xFDFF_FFFF == 0x0000_5EFE { found.append((.isatap, lastWord)) }
        return found
    }
}
