import COpenSSL
import Ground

extension TLSSession {
    /// The maximum number of a certificate's names in an error.
    private static let namesMax = 8

    /// Returns the session that verifies the certificates in `store`, an `X509_STORE_CTX`.
    static func session(_ store: OpaquePointer) -> TLSSession? {
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        guard let ssl = unsafe X509_STORE_CTX_get_ex_data(store, index) else { return nil }
        return unsafe session(ssl: OpaquePointer(ssl))
    }

    /// Verifies the other side's certificates; returns false and records the reason if they are
    /// refused.
    func verifyCertificates(_ store: OpaquePointer) -> Bool {
        switch endpoint {
        case .peer:
            // Peers authenticate with the secret only.
            verificationFailure = .noSharedSecret
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
        case .client(let client, let host) where !client.settings.pins.isEmpty:
            let leaf = unsafe X509_STORE_CTX_get0_cert(store)
            verificationFailure = unsafe Self.pinFailure(
                of: leaf, for: host, pins: client.settings.pins)
            let error = verificationFailure == nil ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION
            unsafe X509_STORE_CTX_set_error(store, error)
        case .client, .server:
            if unsafe X509_verify_cert(store) != 1 {
                verificationFailure = unsafe chainFailure(in: store)
            }
        }
        // Errors of the search for issuers are covered by the reason.
        ERR_clear_error()
        return verificationFailure == nil
    }

    /// Returns the error of a certificate whose key must be one of `pins`; `nil` if it is valid.
    private static func pinFailure(
        of leaf: OpaquePointer?, for host: TLSServerName, pins: [TLSPin]
    ) -> TLSFailureCause? {
        guard let pin = unsafe TLSPin(of: leaf) else {
            return .certificate(reason: "its key cannot be read")
        }
        guard pins.contains(pin) else { return .wrongPin(pin.text) }
        let notBefore = unsafe X509_get0_notBefore(leaf)
        let notAfter = unsafe X509_get0_notAfter(leaf)
        // X509_cmp_current_time returns 0 for a malformed time.
        guard unsafe X509_cmp_current_time(notBefore) < 0 else {
            return unsafe wallTime(notBefore).map { .notYetValid(until: $0, depth: 0) }
                ?? .certificate(reason: "its validity is malformed")
        }
        guard unsafe X509_cmp_current_time(notAfter) > 0 else {
            return unsafe wallTime(notAfter).map { .expired(at: $0, depth: 0) }
                ?? .certificate(reason: "its validity is malformed")
        }
        let isNamed =
            switch host {
            case .name(let name):
                unsafe X509_check_host(
                    leaf, name, 0,
                    UInt32(
                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT),
                    nil) == 1
            case .address(let address):
                unsafe X509_check_ip(
                    leaf, bytes(of: address), address.bitCount / 8, 0) == 1
            }
        return isNamed
            ? nil
            : unsafe .wrongHost(host, names: CertificateNames(of: leaf).displayNames(max: namesMax))
    }

    /// Returns the reason why the chain in `store` was refused.
    private func chainFailure(in store: OpaquePointer) -> TLSFailureCause {
        let error = unsafe X509_STORE_CTX_get_error(store)
        let depth = unsafe Int(X509_STORE_CTX_get_error_depth(store))
        let current = unsafe X509_STORE_CTX_get_current_cert(store)
        let words = unsafe String(cString: X509_verify_cert_error_string(Int(error)))
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            let time = unsafe wallTime(X509_get0_notAfter(current))
            return time.map { .expired(at: $0, depth: depth) } ?? .certificate(reason: words)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            let time = unsafe wallTime(X509_get0_notBefore(current))
            return time.map { .notYetValid(until: $0, depth: depth) }
                ?? .certificate(reason: words)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            return unsafe .unknownIssuer(text(ofName: X509_get_issuer_name(current)))
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            guard case .client(_, let host) = endpoint else { return .certificate(reason: words) }
            let leaf = unsafe X509_STORE_CTX_get0_cert(store)
            let names = unsafe CertificateNames(of: leaf).displayNames(max: Self.namesMax)
            return .wrongHost(host, names: names)
        default: return .certificate(reason: words)
        }
    }

    /// Returns an address in network byte order.
    static func bytes(of address: IPAddress) -> [UInt8] {
        switch address {
        case .v4(let number): (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        case .v6(let number): (0..<16).map { UInt8(truncatingIfNeeded: number >> (120 - 8 * $0)) }
        }
    }
}
