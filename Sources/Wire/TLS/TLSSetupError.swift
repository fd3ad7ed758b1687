/// Why certificates, keys, pins or secrets cannot be used.
package enum TLSSetupError: Error, Hashable, Sendable {
    case noIdentity
    /// No certificate in PEM, or a malformed one; `identity` counts from 0.
    case certificate(identity: Int, reason: String)
    /// No private key in PEM, an encrypted or a malformed one.
    case key(identity: Int, reason: String)
    /// The key does not belong to the first certificate of the chain, or is too weak.
    case refused(identity: Int, reason: String)
    /// The certificates of issuers, of clients or of origins, cannot be read.
    case issuers(reason: String)
    /// Not `sha256/` and 32 bytes in base64.
    case pin(String)
    /// No trust at all: neither the system's store nor issuers nor pins.
    case noTrust
    case noSecret
    /// The secret with this number, from 1 on, is too short.
    case secretTooShort(number: Int, bytesMin: Int)
    /// OpenSSL itself could not be set up.
    case library(reason: String)

    /// A sentence for whoever looks after the node.
    package var message: String {
        switch self {
        case .noIdentity: "TLS needs at least one certificate with its key."
        case .certificate(let identity, let reason):
            "Certificate \(identity + 1) cannot be read: \(reason)."
        case .key(let identity, let reason):
            "The key of certificate \(identity + 1) cannot be read: \(reason)."
        case .refused(let identity, let reason):
            "Certificate \(identity + 1) and its key cannot be used: \(reason)."
        case .issuers(let reason): "The certificates of issuers cannot be read: \(reason)."
        case .pin(let text): "“\(text)” is no pin; a pin is sha256/ and 32 bytes in base64."
        case .noTrust: "Without the system's store, TLS needs certificates of issuers, or pins."
        case .noSecret: "Peers need at least one cluster secret."
        case .secretTooShort(let number, let bytesMin):
            "Cluster secret \(number) is too short; at least \(bytesMin) bytes are needed."
        case .library(let reason): "OpenSSL cannot be set up: \(reason)."
        }
    }
}
