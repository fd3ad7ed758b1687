import COpenSSL

/// A certificate with its key, as the operator's files hold them.
package struct TLSIdentity: Hashable, Sendable {
    /// The certificate, then those of its issuers, without the root: PEM.
    package var chainPEM: [UInt8]
    /// PEM, not encrypted.
    package var keyPEM: [UInt8]
    /// The issuer's answer that the certificate is not revoked (OCSP, RFC 6960): DER, handed to
    /// clients that ask for it as it is.
    package var ocspDER: [UInt8]?

    package init(chainPEM: [UInt8], keyPEM: [UInt8], ocspDER: [UInt8]? = nil) {
        self.chainPEM = chainPEM
        self.keyPEM = keyPEM
        self.ocspDER = ocspDER
    }
}

/// An identity that was read.
struct ServerIdentity: Sendable {
    let certificate: Certificate
    let names: CertificateNames
    let ocspDER: [UInt8]?
    private let issuers: [Certificate]
    private let key: PrivateKey
    /// As it was given, from 0 on.
    private let number: Int

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

    /// Lets `context` show this certificate; another with the same kind of key is replaced.
    func install(in context: OpenSSLContext) throws(TLSSetupError) {
        guard let stack = unsafe OPENSSL_sk_new_null() else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        defer { unsafe OPENSSL_sk_free(stack) }
        for issuer in issuers {
            unsafe OPENSSL_sk_push(stack, UnsafeRawPointer(issuer.pointer))
        }
        // Takes references of its own to all of them.
        let isInstalled = unsafe SSL_CTX_use_cert_and_key(
            context.pointer, certificate.pointer, key.pointer, stack, 1)
        guard isInstalled == 1 else {
            throw .refused(identity: number, reason: OpenSSLError.popErrorText())
        }
    }
}
