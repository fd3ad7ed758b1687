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
