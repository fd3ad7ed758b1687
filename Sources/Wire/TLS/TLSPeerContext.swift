import COpenSSL

/// What two nodes need that know each other by a secret alone: TLS 1.3 with an external pre-shared
/// key (RFC 8446 §2.2, RFC 9257), and no certificates.
///
/// The key exchange is always ephemeral as well (psk_dhe_ke), so that a secret that is lost later
/// opens nothing that was recorded. Only suites with SHA-256 are allowed: OpenSSL would negotiate
/// SHA-384, to which the key does not belong, and fail. Nothing is resumed and nothing sent early.
///
/// Secret → key: HKDF-SHA256 (RFC 5869) without salt, information `nuthatch peer key 1`, 32 bytes.
/// Identity on the wire: `nuthatch-peer-1:` and 8 bytes in hexadecimal of HKDF-SHA256 with the
/// information `nuthatch peer identity 1`. It is not secret and lets the other side choose among
/// several secrets.
package final class TLSPeerContext: Sendable {
    /// Bytes of a secret, at least.
    package static let secretBytesMin = 32

    let context: OpenSSLContext
    /// The first is dialled with, all are accepted.
    private let keys: [PreSharedKey]

    /// The first secret is used to dial, all are accepted.
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
        // Whoever shows a certificate instead of knowing the secret is refused.
        context.enableVerification(mode: SSL_VERIFY_PEER)
        PreSharedKey.installCallbacks(in: context)
    }

    /// What this node dials with.
    var dialingKey: PreSharedKey { keys[0] }

    func key(identity: [UInt8]) -> PreSharedKey? {
        keys.first { $0.identity == identity }
    }
}
