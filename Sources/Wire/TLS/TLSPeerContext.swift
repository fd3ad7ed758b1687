import COpenSSL

/// The TLS configuration between nodes that share a secret: TLS 1.3 with an external pre-shared key
/// (RFC 8446 §2.2, RFC 9257), without certificates.
///
/// The key exchange is always ephemeral as well (psk_dhe_ke), so that a secret lost later does not
/// decrypt recorded traffic. Only suites with SHA-256 are allowed: OpenSSL would negotiate SHA-384,
/// to which the key does not belong, and fail. There is no resumption and no early data.
///
/// The key is HKDF-SHA256 (RFC 5869) of the secret, without salt, with the info
/// `nuthatch peer key 1`, 32 bytes. The identity on the wire is `nuthatch-peer-1:` and 8 bytes in
/// hexadecimal of HKDF-SHA256 with the info `nuthatch peer identity 1`. It is not secret, and lets
/// the other side select one of several secrets.
package final class TLSPeerContext: Sendable {
    /// The minimum length of a secret in bytes.
    package static let secretBytesMin = 32

    let context: OpenSSLContext
    /// The keys; the first is used to dial, and all are accepted.
    private let keys: [PreSharedKey]

    /// Derives the keys of `secrets`: the first is used to dial, and all are accepted.
    ///
    /// - Throws: ``TLSSetupError`` if there is no secret, one is too short, or OpenSSL fails.
    package init(secrets: [[UInt8]]) throws(TLSSetupError) {
        guard !secrets.isEmpty else { throw .noSecret }
        var keys: [PreSharedKey] = []
        for (index, secret) in secrets.enumerated() {
            guard secret.count >= Self.secretBytesMin else {
                throw .secretTooShort(number: index + 1, bytesMin: Self.secretBytesMin)
            }
            keys.append(try PreSharedKey(secret: secret))
        }
        self.keys = keys
        context = try OpenSSLContext(.peer, minimumVersion: .tls13)
        _ = unsafe SSL_CTX_set_options(context.pointer, openssl_op_no_ticket)
        guard unsafe SSL_CTX_set_num_tickets(context.pointer, 0) == 1 else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        try context.setSessionIDContext(sessions: PreSharedKey.sessionIDContext)
        // A peer that sends a certificate instead of using the secret is refused.
        context.enableVerification(mode: SSL_VERIFY_PEER)
        PreSharedKey.installCallbacks(in: context)
    }

    /// The key that this node dials with.
    var dialingKey: PreSharedKey { keys[0] }

    /// Returns the accepted key with this identity; `nil` if there is none.
    func key(identity: [UInt8]) -> PreSharedKey? {
        keys.first { $0.identity == identity }
    }
}

/// A pre-shared key derived from a secret.
@safe
final class PreSharedKey: @unchecked Sendable {
    /// The name of the key on the wire.
    let identity: [UInt8]
    /// A copy of ``identity`` that OpenSSL may read while this object lives.
    private let identityStart: UnsafeMutablePointer<UInt8>
    private let key: [UInt8]

    /// OpenSSL represents the key as a session, whose id context must be that of the `SSL_CTX`.
    static let sessionIDContext = Array("nuthatch peer".utf8)
    private static let keyBytes = 32
    private static let identityBytes = 8
    /// TLS_AES_128_GCM_SHA256; of the suite stored with a key only the hash matters.
    private static let suite: [UInt8] = [0x13, 0x01]

    /// Derives the key and its identity from `secret`.
    ///
    /// - Throws: ``TLSSetupError/library(reason:)`` if OpenSSL fails.
    init(secret: [UInt8]) throws(TLSSetupError) {
        key = try Self.derive(secret, "nuthatch peer key 1", count: Self.keyBytes)
        let digest = try Self.derive(
            secret, "nuthatch peer identity 1", count: Self.identityBytes)
        identity = Array("nuthatch-peer-1:".utf8) + hexadecimal(digest)
        unsafe identityStart = .allocate(capacity: identity.count)
        for index in identity.indices { unsafe identityStart[index] = identity[index] }
    }

    deinit {
        unsafe identityStart.deallocate()
    }

    /// Derives `count` bytes with HKDF-SHA256 without salt.
    private static func derive(
        _ secret: [UInt8], _ information: String, count: Int
    ) throws(TLSSetupError) -> [UInt8] {
        let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        let information = Array(information.utf8)
        var derived = [UInt8](repeating: 0, count: count)
        var derivedCount = count
        let isDone =
            unsafe EVP_PKEY_derive_init(context) == 1
            && EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1
            && EVP_PKEY_CTX_set1_hkdf_key(context, secret, CInt(secret.count)) == 1
            && EVP_PKEY_CTX_add1_hkdf_info(context, information, CInt(information.count)) == 1
            && EVP_PKEY_derive(context, &derived, &derivedCount) == 1
        guard isDone, derivedCount == count else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        return derived
    }

    /// Lets the sessions of `context` use the keys of their own ``TLSPeerContext``.
    static func installCallbacks(in context: OpenSSLContext) {
        unsafe SSL_CTX_set_psk_use_session_callback(context.pointer) {
            ssl, hash, identity, identityCount, session in
            guard let ssl = unsafe ssl, let key = unsafe TLSSession.session(ssl: ssl)?.dialingKey
            else {
                return 0
            }
            // The other side has chosen a suite: a hash other than the key's ends the handshake.
            if let hash = unsafe hash, unsafe EVP_MD_is_a(hash, "SHA256") != 1 { return 0 }
            guard let made = unsafe key.pskSession(ssl) else { return 0 }
            unsafe session?.pointee = unsafe made
            unsafe identity?.pointee = unsafe UnsafePointer(key.identityStart)
            unsafe identityCount?.pointee = key.identity.count
            return 1
        }
        unsafe SSL_CTX_set_psk_find_session_callback(context.pointer) {
            ssl, identity, identityCount, session in
            unsafe session?.pointee = nil
            guard let ssl = unsafe ssl, let owner = unsafe TLSSession.session(ssl: ssl) else {
                return 0
            }
            let requested = unsafe Array(UnsafeBufferPointer(start: identity, count: identityCount))
            // An unknown identity is not an error yet; without a common key the handshake fails.
            guard let key = owner.acceptedKey(identity: requested) else { return 1 }
            unsafe session?.pointee = unsafe key.pskSession(ssl)
            return unsafe session?.pointee == nil ? 0 : 1
        }
    }

    /// Returns the key as a new `SSL_SESSION`, which the caller must free; `nil` if OpenSSL fails.
    private func pskSession(_ ssl: OpaquePointer) -> OpaquePointer? {
        guard let session = unsafe SSL_SESSION_new() else { return nil }
        let isSet =
            unsafe SSL_SESSION_set1_master_key(session, key, key.count) == 1
            && SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, Self.suite)) == 1
            && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1
            && SSL_SESSION_set1_id_context(
                session, Self.sessionIDContext, UInt32(Self.sessionIDContext.count)) == 1
        guard isSet else {
            unsafe SSL_SESSION_free(session)
            return nil
        }
        return unsafe session
    }
}
