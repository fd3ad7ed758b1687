import COpenSSL
package import Ground
import HTTPRules

/// The reason why a TLS connection failed or ended early.
package struct TLSFailure: Error, Hashable, Sendable {
    /// This node's role in the connection.
    package let role: TLSRole
    /// The cause of the failure.
    package let cause: TLSFailureCause

    /// Creates a failure from its parts.
    package init(_ cause: TLSFailureCause, as role: TLSRole) {
        self.role = role
        self.cause = cause
    }

    /// The side that caused a failure.
    package enum Side: Hashable, Sendable {
        case client
        case origin
        case peer
        /// This node itself.
        case node
    }

    /// The side that caused the failure.
    package var side: Side {
        if case .internalError = cause { return .node }
        switch role {
        case .server: return .client
        case .client: return .origin
        case .peer: return .peer
        }
    }

    /// True if an immediate retry may succeed: the connection was cut, or the other side reported a
    /// transient error of its own.
    package var mayRetry: Bool {
        switch cause {
        case .truncated, .alert(TLSAlert.internalError): true
        default: false
        }
    }
}

/// The role of this node in a TLS connection: server of clients, client of origins, or peer of
/// another node.
package enum TLSRole: Hashable, Sendable {
    /// The server of clients.
    case server
    /// A client of origins.
    case client
    /// One of two nodes that share a secret.
    case peer
}

/// The cause of a failure.
package enum TLSFailureCause: Hashable, Sendable {
    /// The connection ended without close_notify, so that it may have been cut (RFC 8446 §6.1).
    case truncated
    /// The connection does not begin with a TLS record; carries the first invalid byte.
    case notTLS(firstByte: UInt8)
    /// The other side supports no version of TLS that is allowed here.
    case versionTooOld
    /// The sides have no cipher suite, group or signature algorithm in common.
    case noSharedParameters
    /// The other side supports none of the offered application protocols (RFC 7301 §3.2).
    case noApplicationProtocol
    /// The other side ended the connection with this alert.
    case alert(UInt8)
    /// At least `max` bytes arrived without data among them.
    case inputLimitExceeded(max: Int)
    /// The other side sent no certificate although one is required.
    case certificateMissing
    /// A certificate of the chain has expired; `depth` is 0 for the other side's own.
    case expired(at: WallTime, depth: Int)
    /// A certificate of the chain is not valid yet; `depth` is 0 for the other side's own.
    case notYetValid(until: WallTime, depth: Int)
    /// The certificate is self-signed.
    case selfSigned
    /// The certificate leads to no trusted issuer; carries the name of the last issuer in its
    /// chain.
    case unknownIssuer(String)
    /// The certificate is not for the requested host; carries the first names that it is for.
    case wrongHost(TLSServerName, names: [String])
    /// The certificate's key is not pinned; carries its pin.
    case wrongPin(String)
    /// Another check of the certificate failed; carries OpenSSL's text.
    case certificate(reason: String)
    /// The other node does not hold a secret that this one accepts.
    case noSharedSecret
    /// A message violates the protocol; carries OpenSSL's text.
    case malformed(reason: String)
    /// OpenSSL failed for a local reason, such as memory.
    case internalError(reason: String)
}

extension TLSFailureCause {
    /// Creates the cause of an error of OpenSSL, `nil` for one without a reason, in a connection
    /// with this `role`.
    init(_ fault: OpenSSLError?, as role: TLSRole) {
        guard let fault else {
            self = .internalError(reason: "OpenSSL gave no reason")
            return
        }
        self =
            switch (fault.alert, fault.reason) {
            case (TLSAlert.protocolVersion, _) where role == .client: .versionTooOld
            case (TLSAlert.noApplicationProtocol, _) where role == .client: .noApplicationProtocol
            case (let alert?, _): .alert(alert)
            case _ where fault.isInternal: .internalError(reason: fault.text)
            case (_, SSL_R_UNSUPPORTED_PROTOCOL), (_, SSL_R_VERSION_TOO_LOW),
                (_, SSL_R_WRONG_SSL_VERSION):
                .versionTooOld
            case (_, SSL_R_NO_SHARED_CIPHER), (_, SSL_R_NO_SHARED_GROUPS),
                (_, SSL_R_NO_SUITABLE_KEY_SHARE), (_, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS),
                (_, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM):
                .noSharedParameters
            case (_, SSL_R_NO_APPLICATION_PROTOCOL): .noApplicationProtocol
            case (_, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE): .certificateMissing
            default: .malformed(reason: fault.text)
            }
    }
}

extension TLSFailure {
    /// The explanation for the operator, one sentence.
    package var message: String {
        switch role {
        case .server: message(naming: "The client")
        case .client: message(naming: "The origin")
        case .peer: message(naming: "The peer")
        }
    }

    /// Returns the explanation for the operator, one sentence; `peerName` names the other side at
    /// the start of a sentence.
    package func message(naming peerName: String) -> String {
        switch cause {
        case .truncated: "\(peerName) closed the TLS connection without close_notify."
        case .notTLS: "\(peerName) does not use TLS: its first bytes are not a TLS record."
        case .versionTooOld: "\(peerName) supports no TLS version that is allowed here."
        case .noSharedParameters:
            "\(peerName) and this node share no cipher suite, group or signature algorithm."
        case .noApplicationProtocol: "\(peerName) supports no offered application protocol."
        case .alert(let number):
            "\(peerName) refused the connection with the TLS alert \(TLSAlert.name(number))."
        case .inputLimitExceeded(let max):
            "\(peerName) sent more than \(max) bytes of TLS records without data."
        case .certificateMissing: "\(peerName) sent no certificate."
        case .noSharedSecret: "\(peerName) does not have the cluster secret."
        case .malformed(let reason): "\(peerName) violated the TLS protocol: \(reason)."
        case .internalError(let reason): "TLS failed on this node: \(reason)."
        default: certificateMessage("\(peerName)'s certificate")
        }
    }

    private func certificateMessage(_ whose: String) -> String {
        switch cause {
        case .expired(let time, let depth):
            return "\(Self.named(whose, depth)) expired on \(Self.text(time))."
        case .notYetValid(let time, let depth):
            return "\(Self.named(whose, depth)) is not valid before \(Self.text(time))."
        case .selfSigned: return "\(whose) is self-signed and not trusted."
        case .unknownIssuer(let issuer):
            return "\(whose) has no trusted issuer; the last issuer in its chain is “\(issuer)”."
        case .wrongHost(let host, let names):
            let list = names.isEmpty ? "no host" : names.joined(separator: ", ")
            return "\(whose) is not for \(host.text); it is for \(list)."
        case .wrongPin(let pin): return "\(whose) has a key that is not pinned: \(pin)."
        case .certificate(let reason): return "\(whose) was refused: \(reason)."
        default: return "\(whose) was refused."
        }
    }

    /// Returns the subject of a sentence about a certificate: `whose` at depth 0, else an issuer of
    /// it.
    private static func named(_ whose: String, _ depth: Int) -> String {
        depth == 0 ? whose : "An issuer of \(whose.prefix(1).lowercased())\(whose.dropFirst())"
    }

    private static func text(_ time: WallTime) -> String {
        var bytes: [UInt8] = []
        HTTPDate.append(time, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The numbers of TLS alerts (RFC 8446 §6, and those that only RFC 5246 has).
enum TLSAlert {
    static let handshakeFailure: UInt8 = 40
    static let decryptError: UInt8 = 51
    static let protocolVersion: UInt8 = 70
    static let internalError: UInt8 = 80
    static let unknownIdentity: UInt8 = 115
    static let noApplicationProtocol: UInt8 = 120

    /// Returns the alert's name, or its number if it has none.
    static func name(_ number: UInt8) -> String {
        names[number] ?? "alert \(number)"
    }

    private static let names: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac",
        21: "decryption_failed", 22: "record_overflow", 30: "decompression_failure",
        40: "handshake_failure", 41: "no_certificate", 42: "bad_certificate",
        43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
        49: "access_denied", 50: "decode_error", 51: "decrypt_error", 60: "export_restriction",
        70: "protocol_version", 71: "insufficient_security", 80: "internal_error",
        86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
        109: "missing_extension", 110: "unsupported_extension", 111: "certificate_unobtainable",
        112: "unrecognized_name", 113: "bad_certificate_status_response",
        114: "bad_certificate_hash_value", 115: "unknown_psk_identity",
        116: "certificate_required", 120: "no_application_protocol",
    ]
}

/// The reason why certificates, keys, pins or secrets cannot be used.
package enum TLSSetupError: Error, Hashable, Sendable {
    case noIdentity
    /// There is no certificate in PEM, or a malformed one; `identity` counts from 0.
    case certificate(identity: Int, reason: String)
    /// There is no private key in PEM, or an encrypted or malformed one.
    case key(identity: Int, reason: String)
    /// The key does not match the first certificate of the chain, or is too weak.
    case refused(identity: Int, reason: String)
    /// The certificates of issuers, for clients or for origins, cannot be read.
    case issuers(reason: String)
    /// The text is not `sha256/` and 32 bytes in base64.
    case pin(String)
    /// Nothing is trusted: neither the system's store nor issuers nor pins.
    case noTrust
    case noSecret
    /// The secret is too short; `number` counts from 1.
    case secretTooShort(number: Int, bytesMin: Int)
    /// OpenSSL itself could not be set up.
    case library(reason: String)

    /// The explanation for the operator, one sentence.
    package var message: String {
        switch self {
        case .noIdentity: "TLS needs at least one certificate with its key."
        case .certificate(let identity, let reason):
            "Certificate \(identity + 1) cannot be read: \(reason)."
        case .key(let identity, let reason):
            "The key of certificate \(identity + 1) cannot be read: \(reason)."
        case .refused(let identity, let reason):
            "Certificate \(identity + 1) and its key cannot be used: \(reason)."
        case .issuers(let reason): "The issuer certificates cannot be read: \(reason)."
        case .pin(let text): "“\(text)” is not a pin; a pin is sha256/ and 32 bytes in base64."
        case .noTrust:
            "Without the system's certificate store, TLS needs issuer certificates or pins."
        case .noSecret: "Peers need at least one cluster secret."
        case .secretTooShort(let number, let bytesMin):
            "Cluster secret \(number) is too short; at least \(bytesMin) bytes are needed."
        case .library(let reason): "OpenSSL cannot be set up: \(reason)."
        }
    }
}
