package import Ground

/// What a TLS client wants to reach, and what the certificate must therefore name.
package enum TLSServerName: Hashable, Sendable {
    /// A host name as ``DomainName/canonical(_:)`` writes it; it is sent as server name (RFC 6066
    /// §3).
    case name(String)
    /// An address, which is never sent as server name and must stand in the certificate as address.
    case address(IPAddress)

    /// As people write it.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(let address): address.description
        }
    }
}

/// A version of TLS that is spoken here.
package enum TLSVersion: UInt16, Hashable, Comparable, Sendable {
    /// RFC 5246, with ECDHE and AEAD alone.
    case tls12 = 0x0303
    /// RFC 8446.
    case tls13 = 0x0304

    package static func < (left: TLSVersion, right: TLSVersion) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// What is spoken above TLS, by its name in ALPN (RFC 7301).
package enum TLSApplicationProtocol: String, Hashable, Sendable {
    case http2 = "h2"
    case http11 = "http/1.1"
    /// What clients offer that speak nothing newer.
    case http10 = "http/1.0"

    /// `protocols` as they travel: each with its length in front.
    static func list(_ protocols: [TLSApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { [UInt8($0.rawValue.utf8.count)] + Array($0.rawValue.utf8) }
    }
}
