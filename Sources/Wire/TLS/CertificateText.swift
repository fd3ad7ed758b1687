import COpenSSL
import Ground

/// `time` as wall time; nil if it is malformed.
func wallTime(_ time: UnsafePointer<ASN1_TIME>?) -> WallTime? {
    guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe ASN1_STRING_free(epoch) }
    var days: CInt = 0
    var seconds: CInt = 0
    guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return WallTime(seconds: Int64(days) * 86_400 + Int64(seconds))
}

/// A distinguished name (RFC 2253), 200 bytes at most.
func text(ofName name: OpaquePointer?) -> String {
    guard let name = unsafe name, let sink = unsafe BIO_new(BIO_s_mem()) else { return "" }
    defer { unsafe BIO_free(sink) }
    unsafe X509_NAME_print_ex(sink, name, 0, openssl_name_rfc2253)
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 200) { room, count in
        count = max(0, unsafe Int(BIO_read(sink, room.baseAddress, CInt(room.count))))
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// The certificate of the other side as it is told to others.
func description(of certificate: OpaquePointer) -> TLSPeerCertificate {
    var digest = [UInt8](repeating: 0, count: 32)
    _ = unsafe X509_digest(certificate, EVP_sha256(), &digest, nil)
    return TLSPeerCertificate(
        subject: unsafe text(ofName: X509_get_subject_name(certificate)),
        fingerprint: String(decoding: hexadecimal(digest), as: UTF8.self))
}

/// Two digits in lower case for each byte.
func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { [ASCII.hexDigit($0 >> 4), ASCII.hexDigit($0 & 15)] }
}
