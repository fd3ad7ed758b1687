import COpenSSL
import Ground

/// Whom a certificate is for by its subjectAltName (RFC 9525 §3); the subject's CN says nothing.
struct CertificateNames {
    /// Host names in their one spelling.
    private(set) var exact: [String] = []
    /// What follows `*.` in names that begin so, in its one spelling: each stands for all names
    /// with one label more (RFC 9525 §6.3).
    ///
    /// A `*` that is only a part of a label counts nothing.
    private(set) var wildcards: [String] = []
    private(set) var addresses: [IPAddress] = []

    /// Reads `certificate`, an `X509`.
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

    private mutating func add(host bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if text.hasPrefix("*.") {
            if let parent = DomainName.canonical(text.dropFirst(2)) { wildcards.append(parent) }
        } else if let name = DomainName.canonical(text[...]) {
            exact.append(name)
        }
    }

    /// True if this certificate is for `name`, a name in its one spelling.
    func covers(_ name: String) -> Bool {
        exact.contains(name) || Self.parent(of: name).map(wildcards.contains) ?? false
    }

    /// What follows the first label of `name`, if there is anything.
    static func parent(of name: String) -> String? {
        guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return nil }
        return String(name[name.index(after: dot)...])
    }

    /// The names as people write them, `max` at most.
    func displayNames(max: Int) -> [String] {
        let all = exact + wildcards.map { "*." + $0 } + addresses.map(\.description)
        return Array(all.prefix(max))
    }
}

/// The bytes of an ASN.1 string.
private func bytes(of string: UnsafeMutablePointer<ASN1_STRING>?) -> [UInt8] {
    guard let start = unsafe ASN1_STRING_get0_data(string) else { return [] }
    let count = unsafe Int(ASN1_STRING_length(string))
    return unsafe Array(UnsafeBufferPointer(start: start, count: count))
}
