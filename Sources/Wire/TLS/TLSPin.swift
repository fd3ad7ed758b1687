import COpenSSL

/// The SHA-256 of a public key with its algorithm (SubjectPublicKeyInfo), as RFC 7469 §2.4 computes
/// it.
///
/// Decided here: a pin is compared with the other side's own certificate, not with issuers (for
/// those there is trust in an issuer). Whoever has pinned keys is answered by nobody else: another
/// key is refused even if its certificate leads to an issuer that is trusted. The pinned key needs
/// no such issuer, but its certificate must be valid now and name the host.
package struct TLSPin: Hashable, Sendable {
    private let digest: [UInt8]

    private static let prefix = "sha256/"
    private static let bytesCount = 32

    /// Reads `sha256/` and 32 bytes in base64; nil for anything else.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let coded = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
        guard coded.count == 44 else { return nil }
        var decoded = [UInt8](repeating: 0, count: 33)
        guard unsafe EVP_DecodeBlock(&decoded, coded, 44) == 33 else { return nil }
        digest = Array(decoded.prefix(Self.bytesCount))
        // Other spellings of the same bytes are none.
        guard self.text == text else { return nil }
    }

    /// The pin of the key of `certificate`, an `X509`.
    init?(of certificate: OpaquePointer?) {
        var start: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &start)
        guard count > 0, let start = unsafe start else { return nil }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
        digest = sha256(bytes.span)
    }

    /// `sha256/` and base64.
    package var text: String {
        var coded = [UInt8](repeating: 0, count: 45)
        _ = unsafe EVP_EncodeBlock(&coded, digest, CInt(digest.count))
        return Self.prefix + String(decoding: coded.prefix(44), as: UTF8.self)
    }
}
