import COpenSSL
import Ground

/// The verification of the other side's certificates by the rules of one end.
@safe
struct CertificateVerification {
    /// The certificates and OpenSSL's result, an `X509_STORE_CTX`.
    private let store: OpaquePointer
    private let endpoint: TLSSession.Endpoint

    /// The maximum number of a certificate's names in an error.
    private static let namesMax = 8

    /// Creates the verification of the certificates in `store`, which must outlive it.
    init(_ store: OpaquePointer, for endpoint: TLSSession.Endpoint) {
        unsafe self.store = unsafe store
        self.endpoint = endpoint
    }

    /// Verifies the certificates, and sets OpenSSL's result.
    ///
    /// - Returns: the reason for a refusal; `nil` if the certificates are valid.
    func failure() -> TLSFailureCause? {
        // Errors of the search for issuers are covered by the reason.
        defer { ERR_clear_error() }
        switch endpoint {
        case .peer:
            // Peers authenticate with the secret only.
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return .noSharedSecret
        case .client(let client, let host) where !client.settings.pins.isEmpty:
            let leaf = unsafe X509_STORE_CTX_get0_cert(store)
            let failure = unsafe Self.pinFailure(of: leaf, for: host, pins: client.settings.pins)
            let error = failure == nil ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION
            unsafe X509_STORE_CTX_set_error(store, error)
            return failure
        case .client, .server: return unsafe X509_verify_cert(store) == 1 ? nil : chainFailure()
        }
    }

    /// Returns the error of the other side's own certificate, whose key must be one of `pins`;
    /// `nil` if it is valid now and names `host`, whoever issued it.
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
                    leaf, address.networkBytes, address.bitCount / 8, 0) == 1
            }
        return isNamed
            ? nil
            : unsafe .wrongHost(host, names: CertificateNames(of: leaf).displayNames(max: namesMax))
    }

    /// Returns the reason why OpenSSL has refused the chain.
    private func chainFailure() -> TLSFailureCause {
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
}
