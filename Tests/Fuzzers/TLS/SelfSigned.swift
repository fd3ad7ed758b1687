import COpenSSL
import Wire

/// A self-signed certificate.
struct SelfSigned {
    static let name = "a.example"

    let identity: TLSIdentity

    init() {
        let key = unsafe Self.key()
        let certificate = unsafe X509_new()
        defer {
            unsafe X509_free(certificate)
            unsafe EVP_PKEY_free(key)
        }
        unsafe X509_set_version(certificate, 2)
        unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), -3600)
        unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), 10 * 365 * 24 * 3600)
        unsafe X509_set_pubkey(certificate, key)
        let subject = unsafe X509_get_subject_name(certificate)
        unsafe X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, "a", -1, -1, 0)
        unsafe X509_set_issuer_name(certificate, subject)
        let names = unsafe X509V3_EXT_conf_nid(nil, nil, NID_subject_alt_name, "DNS:" + Self.name)
        unsafe X509_add_ext(certificate, names, -1)
        unsafe X509_EXTENSION_free(names)
        unsafe X509_sign(certificate, key, EVP_sha256())
        identity = unsafe TLSIdentity(
            chainPEM: Self.text { unsafe PEM_write_bio_X509($0, certificate) },
            keyPEM: Self.text { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) })
    }

    private static func key() -> OpaquePointer? {
        let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        unsafe EVP_PKEY_keygen_init(context)
        unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        var key: OpaquePointer?
        unsafe EVP_PKEY_keygen(context, &key)
        return unsafe key
    }

    private static func text(_ write: (OpaquePointer?) -> CInt) -> [UInt8] {
        let sink = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(sink) }
        precondition(unsafe write(sink) == 1)
        return unsafe [UInt8](unsafeUninitializedCapacity: 1 << 14) { room, count in
            count = unsafe Int(BIO_read(sink, room.baseAddress, CInt(room.count)))
        }
    }
}
