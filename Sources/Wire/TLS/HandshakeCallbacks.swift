import COpenSSL
import Ground

/// The choices of a server when it reads a ClientHello: certificate, application protocol, and the
/// stapled OCSP response.
enum HandshakeCallbacks {
    private typealias ServerNameCallback =
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<CInt>?, UnsafeMutableRawPointer?
        ) -> CInt
    private typealias StatusRequestCallback =
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> CInt
    private typealias UntypedCallback = @convention(c) () -> Void

    /// Lets the sessions of `context` choose as their own ``TLSServerContext`` says.
    static func install(in context: OpenSSLContext) {
        let byName: ServerNameCallback = { ssl, _, _ in
            unsafe HandshakeCallbacks.chooseCertificate(ssl)
        }
        let byStatus: StatusRequestCallback = { ssl, _ in unsafe HandshakeCallbacks.staple(ssl) }
        // OpenSSL stores the functions with an untyped signature, and calls them with the types
        // above.
        _ = unsafe SSL_CTX_callback_ctrl(
            context.pointer, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
            unsafeBitCast(byName, to: UntypedCallback.self))
        _ = unsafe SSL_CTX_callback_ctrl(
            context.pointer, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB,
            unsafeBitCast(byStatus, to: UntypedCallback.self))
        unsafe SSL_CTX_set_alpn_select_cb(
            context.pointer,
            { ssl, chosen, chosenCount, offered, offeredCount, _ in
                unsafe HandshakeCallbacks.chooseProtocol(
                    ssl, chosen, chosenCount, offered, offeredCount)
            }, nil)
    }

    /// Selects the certificates for the server name; without a valid one, those of the default
    /// context remain.
    private static func chooseCertificate(_ ssl: OpaquePointer?) -> CInt {
        guard let ssl = unsafe ssl, let server = unsafe TLSSession.session(ssl: ssl)?.server,
            let name = unsafe serverName(of: ssl)
        else { return SSL_TLSEXT_ERR_NOACK }
        unsafe SSL_set_SSL_CTX(ssl, server.context(for: name).pointer)
        return SSL_TLSEXT_ERR_OK
    }

    /// Staples the OCSP response of the selected certificate, if there is one.
    private static func staple(_ ssl: OpaquePointer?) -> CInt {
        guard let ssl = unsafe ssl, let server = unsafe TLSSession.session(ssl: ssl)?.server,
            let certificate = unsafe SSL_get_certificate(ssl),
            let response = unsafe server.ocsp(for: certificate),
            let copy = unsafe CRYPTO_memdup(response, response.count, nil, 0)
        else { return SSL_TLSEXT_ERR_NOACK }
        // OpenSSL frees the copy.
        _ = unsafe SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, response.count, copy)
        return SSL_TLSEXT_ERR_OK
    }

    /// Selects the first of the server's protocols that the client offers, or ends the handshake if
    /// it offers none of them (RFC 7301 §3.2).
    private static func chooseProtocol(
        _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
        _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?,
        _ offeredCount: UInt32
    ) -> CInt {
        guard let ssl = unsafe ssl, let server = unsafe TLSSession.session(ssl: ssl)?.server,
            let offered = unsafe offered
        else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let list = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
        for wanted in server.settings.protocols {
            let name = Array(wanted.rawValue.utf8)
            var start = 0
            while start < list.count {
                let count = unsafe Int(list[start])
                let end = start + 1 + count
                guard end <= list.count else { break }
                if unsafe list[(start + 1)..<end].elementsEqual(name) {
                    // The selected name may point into the client's list.
                    unsafe chosen?.pointee = unsafe offered + start + 1
                    unsafe chosenCount?.pointee = UInt8(count)
                    return SSL_TLSEXT_ERR_OK
                }
                start = end
            }
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }

    /// Returns the server name that the client sent, in canonical form; `nil` if there is none or
    /// it is invalid.
    static func serverName(of ssl: OpaquePointer) -> String? {
        guard let name = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) else {
            return nil
        }
        return unsafe DomainName.canonical(String(cString: name)[...])
    }
}
