import COpenSSL

/// An `SSL_CTX` with the common configuration, freed with this object.
///
/// The context is not modified after its setup, and OpenSSL allows several threads to create
/// sessions from it.
@safe
final class OpenSSLContext: @unchecked Sendable {
    let pointer: OpaquePointer

    /// The TLS 1.2 suites: ephemeral elliptic-curve Diffie-Hellman with authenticated encryption
    /// (RFC 9325 §4.2).
    private static let suites12 = "ECDHE+AESGCM:ECDHE+CHACHA20"
    private static let suites13 =
        "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
    /// A PSK is bound to one hash; OpenSSL drops it if a suite with another is negotiated.
    private static let peerSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
    /// Larger groups cost an attacker nothing and the server much.
    private static let groups = "X25519:P-256:P-384"
    /// The maximum size in bytes of a certificate chain from the other side.
    private static let chainBytesMax = 64 * 1024

    /// Creates a context with this node's versions, suites and groups for `role`, without
    /// certificates, trust, tickets and early data.
    ///
    /// - Throws: ``TLSSetupError/library(reason:)`` if OpenSSL fails.
    init(_ role: TLSRole, minimumVersion: TLSVersion) throws(TLSSetupError) {
        let method =
            switch role {
            case .server: unsafe TLS_server_method()
            case .client: unsafe TLS_client_method()
            case .peer: unsafe TLS_method()
            }
        guard let made = unsafe SSL_CTX_new(method) else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        unsafe pointer = unsafe made
        unsafe SSL_CTX_set_security_level(pointer, 2)
        let options =
            openssl_op_no_compression | openssl_op_no_renegotiation
            | openssl_op_cipher_server_preference | openssl_op_prioritize_chacha
        _ = unsafe SSL_CTX_set_options(pointer, options)
        // The system's OpenSSL configuration file may have set this.
        _ = unsafe SSL_CTX_clear_options(pointer, openssl_op_allow_no_dhe_kex)
        let isWithoutEarlyData = unsafe SSL_CTX_set_max_early_data(pointer, 0) == 1
        let isSet =
            control(SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS)) != 0
            && control(SSL_CTRL_SET_MIN_PROTO_VERSION, Int(minimumVersion.rawValue)) == 1
            && control(SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_3_VERSION)) == 1
            && setSuites(role) && control(SSL_CTRL_SET_GROUPS_LIST, text: Self.groups) == 1
            && isWithoutEarlyData
        guard isSet else { throw .library(reason: OpenSSLError.popErrorText()) }
        _ = control(SSL_CTRL_SET_MAX_CERT_LIST, Self.chainBytesMax)
        _ = control(SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF))
    }

    deinit {
        unsafe SSL_CTX_free(pointer)
    }

    private func setSuites(_ role: TLSRole) -> Bool {
        let suites13 = role == .peer ? Self.peerSuites : Self.suites13
        return unsafe SSL_CTX_set_cipher_list(pointer, Self.suites12) == 1
            && SSL_CTX_set_ciphersuites(pointer, suites13) == 1
    }

    /// Calls `SSL_CTX_ctrl` with a number, and returns its result.
    @discardableResult
    func control(_ command: CInt, _ number: Int) -> Int {
        unsafe SSL_CTX_ctrl(pointer, command, number, nil)
    }

    /// Calls `SSL_CTX_ctrl` with a text, and returns its result.
    func control(_ command: CInt, text: String) -> Int {
        var bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
        return unsafe SSL_CTX_ctrl(pointer, command, 0, &bytes)
    }

    /// Sets the session id context, at most 32 bytes: only contexts with the same one resume a
    /// session.
    func setSessionIDContext(sessions mark: [UInt8]) throws(TLSSetupError) {
        guard unsafe SSL_CTX_set_session_id_context(pointer, mark, UInt32(mark.count)) == 1 else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
    }

    /// Verifies the other side's certificates with ``CertificateVerification``; `mode` is made of
    /// `SSL_VERIFY_…`.
    func enableVerification(mode: CInt) {
        unsafe SSL_CTX_set_verify(pointer, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(
            pointer,
            { store, _ in
                guard let store = unsafe store,
                    let ssl = unsafe X509_STORE_CTX_get_ex_data(
                        store, SSL_get_ex_data_X509_STORE_CTX_idx()),
                    let session = unsafe TLSSession.session(ssl: OpaquePointer(ssl))
                else { return 0 }
                let verification = unsafe CertificateVerification(store, for: session.endpoint)
                session.verificationFailure = verification.failure()
                return session.verificationFailure == nil ? 1 : 0
            }, nil)
    }

    /// Trusts the certificates of `pem` as issuers; each of them may end a chain.
    func addTrustedIssuers(pem: [UInt8]) throws(TLSSetupError) {
        let certificates = try issuers(pem)
        let store = unsafe SSL_CTX_get_cert_store(pointer)
        for certificate in certificates {
            guard unsafe X509_STORE_add_cert(store, certificate.pointer) == 1 else {
                throw .issuers(reason: OpenSSLError.popErrorText())
            }
        }
        unsafe X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    }

    /// Announces the certificates of `pem` to clients as accepted issuers (RFC 8446 §4.2.4).
    func addClientIssuers(forIssuersOf pem: [UInt8]) throws(TLSSetupError) {
        for certificate in try issuers(pem) {
            guard unsafe SSL_CTX_add_client_CA(pointer, certificate.pointer) == 1 else {
                throw .issuers(reason: OpenSSLError.popErrorText())
            }
        }
    }

    /// Parses the certificates of issuers.
    ///
    /// - Throws: ``TLSSetupError/issuers(reason:)``.
    private func issuers(_ pem: [UInt8]) throws(TLSSetupError) -> [Certificate] {
        do throws(PEMError) {
            return try Certificate.read(pem: pem)
        } catch {
            throw .issuers(reason: error.reason)
        }
    }
}

/// The linked OpenSSL: its version and its process-wide configuration.
package enum OpenSSLLibrary {
    /// The version at run time, such as `OpenSSL 3.0.19 27 Jan 2026`.
    package static var version: String {
        guard let text = unsafe OpenSSL_version(OPENSSL_VERSION) else { return "OpenSSL" }
        return unsafe String(cString: text)
    }

    /// Keeps OpenSSL from freeing its global state when the process exits; must be called before
    /// any other use of OpenSSL.
    ///
    /// The cleanup would run while other threads still release their objects, which then crashes
    /// them; the kernel reclaims all memory in any case.
    package static func disableExitCleanup() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}

/// An error from OpenSSL's error queue of the current thread.
struct OpenSSLError {
    private let code: UInt

    /// Returns the oldest error of the thread's queue, or `nil`, and empties the queue.
    ///
    /// An error left in the queue would be attributed to another session.
    static func popError() -> OpenSSLError? {
        let first = ERR_get_error()
        ERR_clear_error()
        return first == 0 ? nil : OpenSSLError(code: first)
    }

    /// Returns OpenSSL's text for the oldest error, and empties the queue.
    static func popErrorText() -> String {
        popError()?.text ?? "OpenSSL gave no reason"
    }

    /// One of `SSL_R_…` if TLS itself failed; else `nil`.
    var reason: CInt? {
        ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : nil
    }

    /// The number of the alert that the other side sent; `nil` if the error is none.
    var alert: UInt8? {
        guard let reason, reason >= SSL_AD_REASON_OFFSET else { return nil }
        return UInt8(exactly: reason - SSL_AD_REASON_OFFSET)
    }

    /// True if OpenSSL was out of memory, or was used incorrectly.
    var isInternal: Bool {
        guard Int(ERR_GET_REASON(code)) & Int(ERR_R_FATAL) == 0 else { return true }
        return reason == SSL_R_PROTOCOL_IS_SHUTDOWN
    }

    /// True if a handshake of peers failed for lack of a common secret: the key's proof was
    /// invalid, or there was no key, and so nothing to negotiate.
    var isSecretMismatch: Bool {
        switch alert {
        case TLSAlert.handshakeFailure, TLSAlert.decryptError, TLSAlert.unknownIdentity:
            return true
        default: break
        }
        switch reason {
        case SSL_R_BINDER_DOES_NOT_VERIFY, SSL_R_NO_SHARED_CIPHER,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_CERTIFICATE_VERIFY_FAILED:
            return true
        default: return false
        }
    }

    /// True if the text has no (further) PEM section.
    var isNoPEM: Bool {
        ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
    }

    var text: String {
        guard let text = unsafe ERR_reason_error_string(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}
