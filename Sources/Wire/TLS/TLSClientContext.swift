import COpenSSL

/// What the sessions of a TLS client share: whom it trusts, versions, protocols.
///
/// Any number of threads may make sessions of it; it does not change.
package final class TLSClientContext: Sendable {
    let settings: TLSClientSettings
    let context: OpenSSLContext

    /// Reads the issuers; the system's are looked up where OpenSSL keeps them, or where
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` say.
    package init(_ settings: TLSClientSettings) throws(TLSSetupError) {
        guard settings.trustsSystem || settings.issuersPEM != nil || !settings.pins.isEmpty else {
            throw .noTrust
        }
        self.settings = settings
        context = try OpenSSLContext(.client, minimumVersion: settings.minimumVersion)
        if settings.trustsSystem {
            guard unsafe SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
                throw .issuers(reason: OpenSSLError.popErrorText())
            }
        }
        if let issuers = settings.issuersPEM { try context.addTrustedIssuers(pem: issuers) }
        // A file of the system that is missing is no fault: there may be a directory.
        ERR_clear_error()
        context.enableVerification(mode: SSL_VERIFY_PEER)
        if !settings.protocols.isEmpty {
            let list = TLSApplicationProtocol.list(settings.protocols)
            guard unsafe SSL_CTX_set_alpn_protos(context.pointer, list, UInt32(list.count)) == 0
            else { throw .library(reason: OpenSSLError.popErrorText()) }
        }
        // Tickets are handed to the session's owner and not kept here.
        let mode = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
        context.control(SSL_CTRL_SET_SESS_CACHE_MODE, Int(mode))
        unsafe SSL_CTX_sess_set_new_cb(context.pointer) { ssl, ticket in
            guard let ssl = unsafe ssl, let ticket = unsafe ticket,
                let session = unsafe TLSSession.session(ssl: ssl)
            else { return 0 }
            return unsafe session.storeTicket(ticket: ticket) ? 1 : 0
        }
    }
}

/// Whom a TLS client believes, and what it offers.
///
/// Nothing switches verification off.
package struct TLSClientSettings: Hashable, Sendable {
    /// The issuers of this machine are trusted.
    package var trustsSystem: Bool
    /// Further issuers (PEM), or the only ones; any certificate among them may end a chain.
    package var issuersPEM: [UInt8]?
    /// If there are any, the other side must have one of these keys; see ``TLSPin``.
    package var pins: [TLSPin]
    package var minimumVersion: TLSVersion
    /// In the order of preference; none is offered if this is empty.
    package var protocols: [TLSApplicationProtocol]

    package init(
        trustsSystem: Bool = true, issuersPEM: [UInt8]? = nil, pins: [TLSPin] = [],
        minimumVersion: TLSVersion = .tls12,
        protocols: [TLSApplicationProtocol] = [.http2, .http11]
    ) {
        self.trustsSystem = trustsSystem
        self.issuersPEM = issuersPEM
        self.pins = pins
        self.minimumVersion = minimumVersion
        self.protocols = protocols
    }
}

/// What lets a client resume a session: a ticket of the server's with its keys.
///
/// It belongs to the host and to the context that it was made with: what was verified then is not
/// verified again, so it is of use nowhere else.
package struct TLSResumption: Sendable {
    let host: TLSServerName
    let context: TLSClientContext
    let ticket: Ticket

    /// An `SSL_SESSION`, freed with this object and not changed by those who read it.
    @safe
    final class Ticket: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes `pointer` over.
        init(owning pointer: OpaquePointer) {
            unsafe self.pointer = unsafe pointer
        }

        deinit {
            unsafe SSL_SESSION_free(pointer)
        }
    }
}

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
