import COpenSSL
import Ground

extension TLSSession {
    /// Continues the handshake as far as the received bytes allow.
    func handshake() -> TLSEvent {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(ssl)
        guard result == 1 else {
            guard unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
                return fail(failureCause())
            }
            guard input.isLimitReached else { return .needsMore }
            return fail(.inputLimitExceeded(max: CiphertextInput.bytesWithoutDataMax))
        }
        ERR_clear_error()
        guard let parameters = unsafe TLSParameters(of: ssl, isServer: server != nil) else {
            return fail(.internalError(reason: "the session has no version or suite"))
        }
        if let cause = violation(of: parameters) { return fail(cause) }
        state = .open
        input.dataRead()
        return .established(parameters)
    }

    /// Requires the certificate to name `host`, and sends it as server name unless it is an
    /// address.
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
            let bytes = address.networkBytes
            isSet = unsafe X509_VERIFY_PARAM_set1_ip(parameters, bytes, bytes.count) == 1
        }
        // Without this, the certificate would not be checked against the host.
        precondition(isSet, "the host name \(host) cannot be set")
    }

    /// Returns a violation, in what was negotiated, of rules that OpenSSL does not enforce; `nil`
    /// if there is none.
    private func violation(of parameters: TLSParameters) -> TLSFailureCause? {
        switch endpoint {
        case .server: return nil
        case .client(let client, _):
            guard let name = unsafe TLSParameters.applicationProtocolName(of: ssl) else {
                return nil
            }
            let isOffered = client.settings.protocols.contains { $0.rawValue == name }
            return isOffered
                ? nil : .malformed(reason: "it selected a protocol that was not offered")
        case .peer:
            // Requires the secret, and an ephemeral key exchange.
            let isShared =
                parameters.isResumed && parameters.version == .tls13 && parameters.group != nil
            return isShared ? nil : .noSharedSecret
        }
    }

    /// Returns the reason why the last call of OpenSSL failed, and empties its error queue.
    func failureCause() -> TLSFailureCause {
        let fault = OpenSSLError.popError()
        if let verificationFailure { return verificationFailure }
        if case .peer = endpoint, case .handshaking = state,
            wasUnknownIdentity || fault?.isSecretMismatch == true
        {
            return .noSharedSecret
        }
        return TLSFailureCause(fault, as: endpoint.role)
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

    /// Returns the key that a dialling peer names; `nil` if it is unknown, which is noted for the
    /// failure that follows, or if this end dials.
    func acceptedKey(identity: [UInt8]) -> PreSharedKey? {
        guard case .peer(let peer, dials: false) = endpoint else { return nil }
        let key = peer.key(identity: identity)
        wasUnknownIdentity = key == nil
        return key
    }

    /// Takes ownership of a new ticket of a client's session; returns false, leaving it to the
    /// caller, if it cannot be used to resume.
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
