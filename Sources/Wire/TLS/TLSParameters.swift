import COpenSSL
package import Ground
package import NIOCore

/// The result of ``TLSSession/next()``.
package enum TLSEvent: Sendable {
    /// All received bytes are processed.
    case needsMore
    /// The handshake is complete. Occurs once, before any data.
    case established(TLSParameters)
    /// Plaintext, not empty, at most 16 KiB.
    case data(ByteBuffer)
    /// The other side sent close_notify (RFC 8446 §6.1): no more data follows, but data may still
    /// be written. Further calls return the same.
    case closed
    /// The session has failed: send ``TLSSession/takeOutput()``, which may contain an alert, and
    /// close the connection. Further calls return the same.
    case failed(TLSFailure)
}

/// The negotiated parameters of a connection.
package struct TLSParameters: Hashable, Sendable {
    /// The version of TLS.
    package var version: TLSVersion
    /// The suite's name in the IANA registry, such as `TLS_AES_128_GCM_SHA256`.
    package var cipherSuite: String
    /// The negotiated application protocol; `nil` if the client offered none.
    package var applicationProtocol: TLSApplicationProtocol?
    /// The server name that the client sent, in canonical form; `nil` if it sent none, or an
    /// invalid one.
    package var serverName: String?
    /// True if an earlier session was resumed, or a pre-shared key used, instead of certificates.
    package var isResumed: Bool
    /// The group of the ephemeral key exchange, which provides forward secrecy; `nil` only if there
    /// was none.
    package var group: String?
    /// The certificate of the other side; `nil` if it sent none.
    package var certificate: TLSPeerCertificate?
}

extension TLSParameters {
    /// Reads what was negotiated; `nil` if OpenSSL knows no version or suite.
    ///
    /// - Parameters:
    ///   - ssl: an `SSL` whose handshake is complete.
    ///   - isServer: true if the other side may have sent a server name.
    init?(of ssl: OpaquePointer, isServer: Bool) {
        guard let version = unsafe TLSVersion(rawValue: UInt16(SSL_version(ssl))),
            let suite = unsafe SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl))
        else { return nil }
        let name = unsafe Self.applicationProtocolName(of: ssl)
        let group = unsafe SSL_ctrl(ssl, SSL_CTRL_GET_NEGOTIATED_GROUP, 0, nil)
        self.version = version
        cipherSuite = unsafe String(cString: suite)
        applicationProtocol = name.flatMap(TLSApplicationProtocol.init)
        serverName = unsafe isServer ? HandshakeCallbacks.serverName(of: ssl) : nil
        isResumed = unsafe SSL_session_reused(ssl) == 1
        self.group =
            group > 0
            ? unsafe SSL_group_to_name(ssl, CInt(group)).map { unsafe String(cString: $0) } : nil
        certificate = unsafe SSL_get0_peer_certificate(ssl).map { unsafe description(of: $0) }
    }

    /// Returns the name of the negotiated application protocol, supported or not; `nil` if there is
    /// none.
    static func applicationProtocolName(of ssl: OpaquePointer) -> String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }
}

/// The identity of the other side, from its certificate.
package struct TLSPeerCertificate: Hashable, Sendable {
    /// The distinguished name of the subject (RFC 2253), cut to 200 bytes.
    package var subject: String
    /// The SHA-256 of the certificate in hexadecimal.
    package var fingerprint: String
}

/// The host that a TLS client connects to, which the certificate must name.
package enum TLSServerName: Hashable, Sendable {
    /// A host name in the form of ``DomainName/canonical(_:)``; sent as server name (RFC 6066 §3).
    case name(String)
    /// An address; never sent as server name, and matched against the addresses in the certificate.
    case address(IPAddress)

    /// The name or address as text.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(let address): address.description
        }
    }
}

/// A supported version of TLS.
package enum TLSVersion: UInt16, Hashable, Comparable, Sendable {
    /// TLS 1.2 (RFC 5246), with ECDHE and AEAD only.
    case tls12 = 0x0303
    /// TLS 1.3 (RFC 8446).
    case tls13 = 0x0304

    /// Returns true if `left` is the older version.
    package static func < (left: TLSVersion, right: TLSVersion) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// An application protocol above TLS, by its ALPN name (RFC 7301).
package enum TLSApplicationProtocol: String, Hashable, Sendable {
    case http2 = "h2"
    case http11 = "http/1.1"
    /// HTTP/1.0, offered by clients that support nothing newer.
    case http10 = "http/1.0"

    /// Returns `protocols` in wire format, each preceded by its length.
    static func list(_ protocols: [TLSApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { [UInt8($0.rawValue.utf8.count)] + Array($0.rawValue.utf8) }
    }
}
