import COpenSSL
package import Ground

/// The reason why a PEM text cannot be read.
struct PEMError: Error {
    let reason: String
}

/// An `X509`, freed with this object and never modified.
@safe
final class Certificate: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Creates a certificate that takes ownership of `pointer`.
    private init(owning pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        unsafe X509_free(pointer)
    }

    /// Reads the certificates of `pem` in their order; at least one is required.
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
            throw PEMError(reason: "the file has no PEM certificate")
        }
        return certificates
    }

    /// The certificate as an operator sees it; a malformed time counts as 1970.
    var summary: CertificateSummary {
        let names = names.displayNames(max: Self.namesMax)
        let subject = unsafe text(ofName: X509_get_subject_name(pointer))
        let epoch = WallTime(seconds: 0)
        return unsafe CertificateSummary(
            names: names.isEmpty ? [subject] : names,
            notBefore: wallTime(X509_get0_notBefore(pointer)) ?? epoch,
            notAfter: wallTime(X509_get0_notAfter(pointer)) ?? epoch)
    }

    /// Maximum number of names in a summary.
    private static let namesMax = 20

    /// The names and addresses in the certificate.
    var names: CertificateNames { unsafe CertificateNames(of: pointer) }

    /// The kind of key, one of `EVP_PKEY_…`; certificates with several kinds can serve one name.
    var keyKind: CInt {
        unsafe EVP_PKEY_get_base_id(X509_get0_pubkey(pointer))
    }
}

/// The names and the validity of a certificate.
package struct CertificateSummary: Hashable, Sendable {
    /// The host names and addresses, or the subject if there are none.
    package let names: [String]
    /// The beginning of the validity.
    package let notBefore: WallTime
    /// The end of the validity.
    package let notAfter: WallTime

    /// Creates a summary from its parts.
    package init(names: [String], notBefore: WallTime, notAfter: WallTime) {
        self.names = names
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// Returns the summaries of the certificates of a PEM text, in their order; empty if it cannot
    /// be read.
    package static func read(pem: [UInt8]) -> [CertificateSummary] {
        (try? Certificate.read(pem: pem))?.map(\.summary) ?? []
    }
}

/// An `EVP_PKEY`, freed with this object and never modified.
@safe
final class PrivateKey: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Reads the first private key of `pem`, which must not be encrypted.
    init(pem: [UInt8]) throws(PEMError) {
        let text = String(decoding: pem, as: UTF8.self)
        guard text.contains("PRIVATE KEY-----") else {
            throw PEMError(reason: "the file has no PEM private key")
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

/// A `BIO` that reads bytes from memory.
@safe
private struct MemoryBIO {
    let pointer: OpaquePointer

    init(_ bytes: [UInt8]) throws(PEMError) {
        // The BIO copies the bytes, so that they need not stay in place.
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

    /// Frees the `BIO`; must be called once, after the last use.
    func free() {
        unsafe BIO_free(pointer)
    }
}

/// Declines OpenSSL's request for a password, for which it would otherwise prompt on the terminal.
private func noPassword(
    _ room: UnsafeMutablePointer<CChar>?, _ count: CInt, _ isWriting: CInt,
    _ context: UnsafeMutableRawPointer?
) -> CInt { -1 }

/// Converts `time` to wall time; `nil` if it is malformed.
func wallTime(_ time: UnsafePointer<ASN1_TIME>?) -> WallTime? {
    guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe ASN1_STRING_free(epoch) }
    var days: CInt = 0
    var seconds: CInt = 0
    guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return WallTime(seconds: Int64(days) * 86_400 + Int64(seconds))
}

/// Returns a distinguished name as text (RFC 2253), cut to 200 bytes; empty without a name.
func text(ofName name: OpaquePointer?) -> String {
    guard let name = unsafe name, let sink = unsafe BIO_new(BIO_s_mem()) else { return "" }
    defer { unsafe BIO_free(sink) }
    unsafe X509_NAME_print_ex(sink, name, 0, openssl_name_rfc2253)
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 200) { room, count in
        count = max(0, unsafe Int(BIO_read(sink, room.baseAddress, CInt(room.count))))
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// Returns the subject and the fingerprint of a certificate of the other side.
func description(of certificate: OpaquePointer) -> TLSPeerCertificate {
    var digest = [UInt8](repeating: 0, count: 32)
    _ = unsafe X509_digest(certificate, EVP_sha256(), &digest, nil)
    return TLSPeerCertificate(
        subject: unsafe text(ofName: X509_get_subject_name(certificate)),
        fingerprint: String(decoding: hexadecimal(digest), as: UTF8.self))
}

/// Returns two lower-case hexadecimal digits for each byte.
func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { [ASCII.hexDigit($0 >> 4), ASCII.hexDigit($0 & 15)] }
}

/// The subjects of a certificate in its subjectAltName (RFC 9525 §3); the subject's CN is ignored.
struct CertificateNames {
    /// The host names in canonical form.
    private(set) var exact: [String] = []
    /// The parts after `*.` of wildcard names, in canonical form; each stands for all names with
    /// one more label (RFC 9525 §6.3).
    ///
    /// Names in which `*` is only a part of a label are ignored.
    private(set) var wildcards: [String] = []
    private(set) var addresses: [IPAddress] = []

    /// Reads the names of `certificate`, an `X509`.
    init(of certificate: OpaquePointer?) {
        guard
            let names = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil)
        else { return }
        let stack = OpaquePointer(names)
        defer { unsafe GENERAL_NAMES_free(stack) }
        for index in 0..<max(0, unsafe OPENSSL_sk_num(stack)) {
            guard let raw = unsafe OPENSSL_sk_value(stack, index) else { continue }
            let name = unsafe raw.assumingMemoryBound(to: GENERAL_NAME.self).pointee
            switch unsafe name.type {
            case GEN_DNS:
                let host = unsafe bytes(of: name.d.dNSName)
                add(host: host)
            case GEN_IPADD:
                let address = unsafe bytes(of: name.d.iPAddress)
                if let address = IPAddress(address.span) { addresses.append(address) }
            default: continue
            }
        }
    }

    /// Adds a host name or a wildcard; ignores anything else.
    private mutating func add(host bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if text.hasPrefix("*.") {
            if let parent = DomainName.canonical(text.dropFirst(2)) { wildcards.append(parent) }
        } else if let name = DomainName.canonical(text[...]) {
            exact.append(name)
        }
    }

    /// Returns true if a name or wildcard of the certificate covers the host `name`, which is in
    /// canonical form.
    func covers(_ name: String) -> Bool {
        exact.contains(name) || Self.parent(of: name).map(wildcards.contains) ?? false
    }

    /// Returns the part after the first label of `name`; `nil` if there is none.
    static func parent(of name: String) -> String? {
        guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return nil }
        return String(name[name.index(after: dot)...])
    }

    /// Returns at most `max` names for display.
    func displayNames(max: Int) -> [String] {
        let all = exact + wildcards.map { "*." + $0 } + addresses.map(\.description)
        return Array(all.prefix(max))
    }
}

/// Returns the bytes of an ASN.1 string.
private func bytes(of string: UnsafeMutablePointer<ASN1_STRING>?) -> [UInt8] {
    guard let start = unsafe ASN1_STRING_get0_data(string) else { return [] }
    let count = unsafe Int(ASN1_STRING_length(string))
    return unsafe Array(UnsafeBufferPointer(start: start, count: count))
}
