import COpenSSL

/// The shared configuration of a TLS client's sessions: trust, versions, protocols.
///
/// Immutable; any number of threads may create sessions from it.
package final class TLSClientContext: Sendable {
    let settings: TLSClientSettings
    let context: OpenSSLContext

    /// Loads the trusted issuers.
    ///
    /// The system's issuers are found where OpenSSL keeps them, or where `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` point.
    ///
    /// - Throws: ``TLSSetupError``, also if `settings` trust nothing.
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
        // A missing file of the system is not an error, since there may be a directory.
        ERR_clear_error()
        context.enableVerification(mode: SSL_VERIFY_PEER)
        if !settings.protocols.isEmpty {
            let list = TLSApplicationProtocol.list(settings.protocols)
            guard unsafe SSL_CTX_set_alpn_protos(context.pointer, list, UInt32(list.count)) == 0
            else { throw .library(reason: OpenSSLError.popErrorText()) }
        }
        // Tickets are passed to the session's owner, and not cached here.
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

/// The trust settings of a TLS client, and the parameters that it offers.
///
/// No setting disables verification.
package struct TLSClientSettings: Hashable, Sendable {
    /// True if the system's issuers are trusted.
    package var trustsSystem: Bool
    /// Additional issuers in PEM, or the only ones; each certificate may end a chain.
    ///
    /// `nil` for none.
    package var issuersPEM: [UInt8]?
    /// The accepted keys; if not empty, the other side must have one of them (see ``TLSPin``).
    package var pins: [TLSPin]
    /// The lowest version of TLS that is accepted.
    package var minimumVersion: TLSVersion
    /// The application protocols in order of preference; if empty, none is offered.
    package var protocols: [TLSApplicationProtocol]

    /// Creates settings from their parts.
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

/// The state for resuming a session: a ticket from the server, with its keys.
///
/// It is bound to the host and the context of the original session, because what was verified then
/// is not verified again.
package struct TLSResumption: Sendable {
    let host: TLSServerName
    let context: TLSClientContext
    let ticket: Ticket

    /// An `SSL_SESSION`, freed with this object; its readers do not modify it.
    @safe
    final class Ticket: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Creates a ticket that takes ownership of `pointer`.
        init(owning pointer: OpaquePointer) {
            unsafe self.pointer = unsafe pointer
        }

        deinit {
            unsafe SSL_SESSION_free(pointer)
        }
    }
}

/// The SHA-256 of a public key with its algorithm (SubjectPublicKeyInfo), computed as in RFC 7469
/// §2.4.
///
/// A pin is compared with the key of the other side's own certificate, not with those of issuers
/// (which can be trusted instead). If keys are pinned, any other key is refused, even if its
/// certificate leads to a trusted issuer. A pinned key needs no trusted issuer, but its certificate
/// must be valid now and name the host.
package struct TLSPin: Hashable, Sendable {
    private let digest: [UInt8]

    private static let prefix = "sha256/"
    private static let bytesCount = 32

    /// Parses `sha256/` and 32 bytes in base64; `nil` for anything else.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let coded = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
        guard coded.count == 44 else { return nil }
        var decoded = [UInt8](repeating: 0, count: 33)
        guard unsafe EVP_DecodeBlock(&decoded, coded, 44) == 33 else { return nil }
        digest = Array(decoded.prefix(Self.bytesCount))
        // Other spellings of the same bytes are rejected.
        guard self.text == text else { return nil }
    }

    /// Creates the pin of the key of `certificate`, an `X509`; `nil` if it cannot be read.
    init?(of certificate: OpaquePointer?) {
        var start: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &start)
        guard count > 0, let start = unsafe start else { return nil }
        defer { unsafe CRYPTO_free(start, nil, 0) }
        let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
        digest = sha256(bytes.span)
    }

    /// The pin as `sha256/` and base64.
    package var text: String {
        var coded = [UInt8](repeating: 0, count: 45)
        _ = unsafe EVP_EncodeBlock(&coded, digest, CInt(digest.count))
        return Self.prefix + String(decoding: coded.prefix(44), as: UTF8.self)
    }
}
