import COpenSSL

/// Why a text in PEM could not be read.
struct PEMError: Error {
    let reason: String
}

/// An `X509`, freed with this object and never changed.
@safe
final class Certificate: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes `pointer` over.
    private init(owning pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        unsafe X509_free(pointer)
    }

    /// The certificates of `pem` in their order, at least one.
    static func read(pem: [UInt8]) throws(PEMError) -> [Certificate] {
        let source = try MemoryBIO(pem)
        defer { source.free() }
        var certificates: [Certificate] = []
        while let next = unsafe PEM_read_bio_X509(source.pointer, nil, noPassword, nil) {
            certificates.append(unsafe Certificate(owning: next))
        }
        let fault = OpenSSLError.popError()
        if let fault, !fault.isNoPEM { throw PEMError(reason: fault.text) }
        guard !certificates.isEmpty else {
            throw PEMError(reason: "there is no certificate in PEM")
        }
        return certificates
    }

    /// The names and addresses that the certificate is for.
    var names: CertificateNames { unsafe CertificateNames(of: pointer) }

    /// One of `EVP_PKEY_…`: certificates of several kinds of keys can serve one name.
    var keyKind: CInt {
        unsafe EVP_PKEY_get_base_id(X509_get0_pubkey(pointer))
    }
}

/// An `EVP_PKEY`, freed with this object and never changed.
@safe
final class PrivateKey: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Reads the first private key of `pem`, which must not be encrypted.
    init(pem: [UInt8]) throws(PEMError) {
        let text = String(decoding: pem, as: UTF8.self)
        guard text.contains("PRIVATE KEY-----") else {
            throw PEMError(reason: "there is no private key in PEM")
        }
        guard !text.contains("ENCRYPTED") else { throw PEMError(reason: "it is encrypted") }
        let source = try MemoryBIO(pem)
        defer { source.free() }
        guard let key = unsafe PEM_read_bio_PrivateKey(source.pointer, nil, noPassword, nil) else {
            throw PEMError(reason: OpenSSLError.popErrorText())
        }
        unsafe pointer = unsafe key
        ERR_clear_error()
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }
}

/// A `BIO` that reads bytes of this process.
@safe
private struct MemoryBIO {
    let pointer: OpaquePointer

    init(_ bytes: [UInt8]) throws(PEMError) {
        // A copy of its own: the bytes need not stay where they are.
        guard let source = unsafe BIO_new(BIO_s_mem()) else {
            throw PEMError(reason: OpenSSLError.popErrorText())
        }
        unsafe pointer = unsafe source
        let written = unsafe BIO_write(source, bytes, CInt(bytes.count))
        guard written == bytes.count else {
            free()
            throw PEMError(reason: OpenSSLError.popErrorText())
        }
    }

    func free() {
        unsafe BIO_free(pointer)
    }
}

/// Answers OpenSSL's question for a password, which it would otherwise ask the terminal.
private func noPassword(
    _ room: UnsafeMutablePointer<CChar>?, _ count: CInt, _ isWriting: CInt,
    _ context: UnsafeMutableRawPointer?
) -> CInt { -1 }
