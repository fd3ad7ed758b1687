import COpenSSL
package import Wire

/// A certificate for a test, with its key.
@safe
package final class TestCertificate: @unchecked Sendable {
    package enum Key: Hashable, CaseIterable {
        case ecdsa
        case rsa
    }

    /// A validity period in seconds from now.
    package struct Validity: Sendable {
        package var begins = -3600
        package var ends = 24 * 3600

        package init(begins: Int = -3600, ends: Int = 24 * 3600) {
            self.begins = begins
            self.ends = ends
        }

        package static let past = Validity(begins: -7200, ends: -3600)
        package static let future = Validity(begins: 3600, ends: 7200)
    }

    package let certificate: OpaquePointer
    package let key: OpaquePointer
    private let issuer: TestCertificate?

    /// Creates a certificate, which is self-signed without `issuer`.
    ///
    /// `names` have the syntax of subjectAltName in OpenSSL's configuration, like `DNS:a.example`.
    package init(
        _ subject: String, names: String? = nil, key kind: Key = .ecdsa,
        validity: Validity = Validity(), isIssuer: Bool = false, issuer: TestCertificate? = nil
    ) {
        unsafe key = unsafe Self.makeKey(kind)
        unsafe certificate = unsafe X509_new()
        self.issuer = issuer
        let issued = unsafe issuer?.certificate ?? certificate
        unsafe X509_set_version(certificate, 2)
        unsafe ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1..<1 << 40))
        unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), validity.begins)
        unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), validity.ends)
        unsafe X509_set_pubkey(certificate, key)
        let name = unsafe X509_get_subject_name(certificate)
        let isNamed = unsafe X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_UTF8, subject, -1, -1, 0)
        precondition(isNamed == 1)
        unsafe X509_set_issuer_name(certificate, X509_get_subject_name(issued))
        unsafe add(NID_basic_constraints, isIssuer ? "critical,CA:TRUE" : "CA:FALSE", issued)
        if isIssuer { unsafe add(NID_key_usage, "critical,keyCertSign", issued) }
        if let names { unsafe add(NID_subject_alt_name, names, issued) }
        let isSigned = unsafe X509_sign(certificate, issuer?.key ?? key, EVP_sha256())
        precondition(isSigned > 0)
    }

    deinit {
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
    }

    /// A shared authority for tests that need no other.
    package static let authority = TestCertificate("Test authority", isIssuer: true)

    /// A certificate for `a.example`.
    package static let exampleLeaf = TestCertificate("a", names: "DNS:a.example", issuer: authority)

    private func add(_ kind: CInt, _ value: String, _ issued: OpaquePointer) {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, issued, certificate, nil, nil, 0)
        let made = unsafe X509V3_EXT_conf_nid(nil, &context, kind, value)
        precondition(unsafe made != nil, value)
        unsafe X509_add_ext(certificate, made, -1)
        unsafe X509_EXTENSION_free(made)
    }

    private static func makeKey(_ kind: Key) -> OpaquePointer {
        let number = kind == .rsa ? EVP_PKEY_RSA : EVP_PKEY_EC
        let context = unsafe EVP_PKEY_CTX_new_id(number, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        unsafe EVP_PKEY_keygen_init(context)
        switch kind {
        case .rsa: unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048)
        case .ecdsa:
            unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        }
        var key: OpaquePointer?
        unsafe EVP_PKEY_keygen(context, &key)
        guard let key = unsafe key else { preconditionFailure("no key") }
        return unsafe key
    }
}

extension TestCertificate {
    package var pem: [UInt8] {
        unsafe Self.text { sink in unsafe PEM_write_bio_X509(sink, certificate) }
    }

    package var keyPEM: [UInt8] {
        unsafe Self.text { sink in
            unsafe PEM_write_bio_PrivateKey(sink, key, nil, nil, 0, nil, nil)
        }
    }

    /// The certificate and its issuers except the root.
    package var chainPEM: [UInt8] {
        guard let issuer, issuer.issuer != nil else { return pem }
        return pem + issuer.chainPEM
    }

    /// The pin: `sha256/` and the SHA-256 of the key (RFC 7469 §2.4).
    package var pin: String {
        var start: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &start)
        defer { unsafe CRYPTO_free(start, nil, 0) }
        var digest = [UInt8](repeating: 0, count: 32)
        unsafe SHA256(start, Int(count), &digest)
        var coded = [UInt8](repeating: 0, count: 45)
        _ = unsafe EVP_EncodeBlock(&coded, digest, 32)
        return "sha256/" + String(decoding: coded.prefix(44), as: UTF8.self)
    }

    package var identity: TLSIdentity { TLSIdentity(chainPEM: chainPEM, keyPEM: keyPEM) }

    private static func text(_ write: (OpaquePointer?) -> CInt) -> [UInt8] {
        let sink = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(sink) }
        precondition(unsafe write(sink) == 1)
        return unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { room, count in
            count = unsafe Int(BIO_read(sink, room.baseAddress, CInt(room.count)))
        }
    }
}
