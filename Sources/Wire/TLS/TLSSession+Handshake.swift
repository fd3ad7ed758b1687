import COpenSSL

extension TLSSession {
    /// Continues the handshake as far as the received bytes allow.
    func handshake() -> TLSEvent {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(ssl)
        guard result == 1 else {
            guard unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
                return fail(failureCause())
            }
            guard bytesWithoutData < Self.bytesWithoutDataMax else {
                return fail(.inputLimitExceeded(max: Self.bytesWithoutDataMax))
            }
            return .needsMore
        }
        ERR_clear_error()
        if let cause = handshakeViolation() { return fail(cause) }
        guard let parameters = parameters() else {
            return fail(.internalError(reason: "the session has no version or suite"))
        }
        state = .open
        bytesWithoutData = 0
        return .established(parameters)
    }

    /// Sends `host` as server name, and requires the certificate to name it.
    func setServerName(_ host: TLSServerName) {
        let parameters = unsafe SSL_get0_param(ssl)
        let flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
        unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(flags))
        var isSet = false
        switch host {
        case .name(let name):
            var bytes = name.utf8.map { CChar(bitPattern: $0) } + [0]
            isSet =
                unsafe X509_VERIFY_PARAM_set1_host(parameters, bytes, 0) == 1
                && SSL_ctrl(
                    ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &bytes) == 1
        case .address(let address):
            let bytes = Self.bytes(of: address)
            isSet = unsafe X509_VERIFY_PARAM_set1_ip(parameters, bytes, bytes.count) == 1
        }
        // Without this, the certificate would not be checked against the host.
        precondition(isSet, "the host name \(host) cannot be set")
    }

    /// Returns a violation of this node's rules that OpenSSL accepts; `nil` if there is none.
    private func handshakeViolation() -> TLSFailureCause? {
        switch endpoint {
        case .server: return nil
        case .client(let client, _):
            let chosen = selectedProtocol()
            guard let chosen else { return nil }
            guard let known = TLSApplicationProtocol(rawValue: chosen),
                client.settings.protocols.contains(known)
            else { return .malformed(reason: "it selected a protocol that was not offered") }
            return nil
        case .peer:
            // Requires the secret, and an ephemeral key exchange.
            let isShared = unsafe SSL_session_reused(ssl) == 1 && SSL_version(ssl) == TLS1_3_VERSION
            return isShared && group() != nil ? nil : .noSharedSecret
        }
    }

    private func parameters() -> TLSParameters? {
        guard let version = unsafe TLSVersion(rawValue: UInt16(SSL_version(ssl))),
            let suite = unsafe SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl))
        else { return nil }
        return TLSParameters(
            version: version,
            cipherSuite: unsafe String(cString: suite),
            applicationProtocol: selectedProtocol().flatMap(TLSApplicationProtocol.init),
            serverName: unsafe server == nil ? nil : HandshakeCallbacks.serverName(of: ssl),
            isResumed: unsafe SSL_session_reused(ssl) == 1,
            group: group(),
            certificate: unsafe SSL_get0_peer_certificate(ssl).map {
                unsafe description(of: $0)
            })
    }

    private func selectedProtocol() -> String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    private func group() -> String? {
        let number = unsafe SSL_ctrl(ssl, SSL_CTRL_GET_NEGOTIATED_GROUP, 0, nil)
        guard number > 0, let name = unsafe SSL_group_to_name(ssl, CInt(number)) else {
            return nil
        }
        return unsafe String(cString: name)
    }

    /// Returns the reason why the last call of OpenSSL failed.
    func failureCause() -> TLSFailureCause {
        let fault = OpenSSLError.popError()
        if let verificationFailure { return verificationFailure }
        if case .peer = endpoint, case .handshaking = state, isSecretMismatch(fault) {
            return .noSharedSecret
        }
        guard let fault else { return .internalError(reason: "OpenSSL gave no reason") }
        if let alert = fault.alert { return failureCause(of: alert) }
        if fault.isInternal { return .internalError(reason: fault.text) }
        switch fault.reason {
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_WRONG_SSL_VERSION:
            return .versionTooOld
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE,
            SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
            return .noSharedParameters
        case SSL_R_NO_APPLICATION_PROTOCOL: return .noApplicationProtocol
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return .certificateMissing
        default: return .malformed(reason: fault.text)
        }
    }

    private func failureCause(of alert: UInt8) -> TLSFailureCause {
        guard case .client = endpoint else { return .alert(alert) }
        switch alert {
        case TLSAlert.protocolVersion: return .versionTooOld
        case TLSAlert.noApplicationProtocol: return .noApplicationProtocol
        default: return .alert(alert)
        }
    }

    /// Returns true if the handshake with a peer failed for lack of a common secret: the key's
    /// proof was invalid, or there was no key, and so nothing to negotiate.
    private func isSecretMismatch(_ fault: OpenSSLError?) -> Bool {
        if wasUnknownIdentity { return true }
        switch fault?.alert {
        case TLSAlert.handshakeFailure, TLSAlert.decryptError, TLSAlert.unknownIdentity:
            return true
        default: break
        }
        switch fault?.reason {
        case SSL_R_BINDER_DOES_NOT_VERIFY, SSL_R_NO_SHARED_CIPHER,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_CERTIFICATE_VERIFY_FAILED:
            return true
        default: return false
        }
    }
}

// MARK: - For OpenSSL's callbacks

extension TLSSession {
    /// The server's context; `nil` for other roles.
    var server: TLSServerContext? {
        if case .server(let server) = endpoint { server } else { nil }
    }

    /// The current keys for tickets; `nil` for other roles than server, or if there are none.
    var ticketKeys: TicketKeys? { server?.ticketKeys }

    /// The key of a dialling peer; `nil` for other roles.
    var dialingKey: PreSharedKey? {
        if case .peer(let peer, dials: true) = endpoint { peer.dialingKey } else { nil }
    }

    /// Returns the key that the other peer names; `nil` if it is unknown.
    func acceptedKey(identity: [UInt8]) -> PreSharedKey? {
        guard case .peer(let peer, dials: false) = endpoint else { return nil }
        let key = peer.key(identity: identity)
        wasUnknownIdentity = key == nil
        return key
    }

    /// Keeps a new ticket and its reference; returns false, keeping neither, if it is unusable.
    func storeTicket(ticket: OpaquePointer) -> Bool {
        guard case .client(let client, let host) = endpoint,
            unsafe SSL_SESSION_is_resumable(ticket) == 1
        else { return false }
        newResumption = TLSResumption(
            host: host, context: client,
            ticket: unsafe TLSResumption.Ticket(owning: ticket))
        return true
    }
}
