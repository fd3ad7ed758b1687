import COpenSSL

/// A certificate chain with its key, as in the operator's files.
package struct TLSIdentity: Hashable, Sendable {
    /// The certificate and its issuers without the root, in PEM.
    package var chainPEM: [UInt8]
    /// The private key in PEM, not encrypted.
    package var keyPEM: [UInt8]
    /// The OCSP response (RFC 6960) that the certificate is not revoked, in DER; `nil` for none.
    ///
    /// Sent unchanged to clients that ask for it.
    package var ocspDER: [UInt8]?

    /// Creates an identity from the contents of its files, which are not checked.
    package init(chainPEM: [UInt8], keyPEM: [UInt8], ocspDER: [UInt8]? = nil) {
        self.chainPEM = chainPEM
        self.keyPEM = keyPEM
        self.ocspDER = ocspDER
    }
}

/// A ``TLSIdentity`` whose certificates and key are parsed and belong together.
struct ServerIdentity: Sendable {
    let certificate: Certificate
    let names: CertificateNames
    let ocspDER: [UInt8]?
    private let issuers: [Certificate]
    private let key: PrivateKey
    /// The position among the configured identities, from 0.
    private let number: Int

    /// Parses an identity; `number` is its position among the configured ones, from 0.
    ///
    /// - Throws: ``TLSSetupError`` if the certificate or the key cannot be read, or they do not
    ///   belong together.
    init(_ identity: TLSIdentity, number: Int) throws(TLSSetupError) {
        let chain: [Certificate]
        do throws(PEMError) {
            chain = try Certificate.read(pem: identity.chainPEM)
        } catch {
            throw .certificate(identity: number, reason: error.reason)
        }
        do throws(PEMError) {
            key = try PrivateKey(pem: identity.keyPEM)
        } catch {
            throw .key(identity: number, reason: error.reason)
        }
        certificate = chain[0]
        guard unsafe X509_check_private_key(certificate.pointer, key.pointer) == 1 else {
            throw .refused(identity: number, reason: OpenSSLError.popErrorText())
        }
        issuers = Array(chain.dropFirst())
        names = certificate.names
        ocspDER = identity.ocspDER
        self.number = number
    }

    /// Adds the certificate with its chain and key to `context`; replaces another with the same
    /// kind of key.
    ///
    /// - Throws: ``TLSSetupError`` if OpenSSL refuses them, for example because the key is too
    ///   weak.
    func install(in context: OpenSSLContext) throws(TLSSetupError) {
        guard let stack = unsafe OPENSSL_sk_new_null() else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        defer { unsafe OPENSSL_sk_free(stack) }
        for issuer in issuers {
            unsafe OPENSSL_sk_push(stack, UnsafeRawPointer(issuer.pointer))
        }
        // OpenSSL takes its own references to all of them.
        let isInstalled = unsafe SSL_CTX_use_cert_and_key(
            context.pointer, certificate.pointer, key.pointer, stack, 1)
        guard isInstalled == 1 else {
            throw .refused(identity: number, reason: OpenSSLError.popErrorText())
        }
    }
}
