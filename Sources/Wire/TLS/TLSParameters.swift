package import Ground
package import NIOCore

/// What ``TLSSession/next()`` found.
package enum TLSEvent: Sendable {
    /// All bytes have been taken in.
    case needsMore
    /// The handshake is done: what was agreed on. Comes once, before any data.
    case established(TLSParameters)
    /// Plaintext, not empty, 16 KiB at most.
    case data(ByteBuffer)
    /// The other side said that no more data comes (close_notify, RFC 8446 §6.1). Data may still
    /// be written. Further calls say the same.
    case closed
    /// Close the connection once ``TLSSession/takeOutput()`` is sent, which may hold an alert.
    /// Further calls say the same.
    case failed(TLSFailure)
}

/// What the two sides of a connection agreed on.
package struct TLSParameters: Hashable, Sendable {
    package var version: TLSVersion
    /// The suite's name in the registry, like `TLS_AES_128_GCM_SHA256`.
    package var cipherSuite: String
    /// Nil if the client offered none.
    package var applicationProtocol: TLSApplicationProtocol?
    /// The name that the client asked for, in its one spelling; nil if it sent none, or no name.
    package var serverName: String?
    /// An earlier session was resumed, or a secret shared before was used, instead of certificates.
    package var isResumed: Bool
    /// The group of the key exchange that makes the session forward-secret; nil only if there was
    /// none.
    package var group: String?
    /// The certificate of the other side, if it showed one.
    package var certificate: TLSPeerCertificate?
}

/// Who the other side is by its certificate.
package struct TLSPeerCertificate: Hashable, Sendable {
    /// The subject's name (RFC 2253).
    package var subject: String
    /// SHA-256 of the certificate in hexadecimal.
    package var fingerprint: String
}

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
