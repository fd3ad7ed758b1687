import COpenSSL

/// What the sessions of a TLS client share: whom it trusts, versions, protocols.
///
/// Any number of threads may make sessions of it; it does not change.
package final class TLSClientContext: Sendable {
    let settings: TLSClientSettings
    let context: OpenSSLContext

    /// Reads the issuers; the system's are looked up where OpenSSL keeps them, or where
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` say.
    package init(_ settings: TLSClientSettings) throws(TLSSetupError) {
        guard settings.trustsSystem || settings.issuersPEM != nil || !settings.pins.isEmpty else {
            throw .noTrust
        }
        self.settings = settings
        context = try OpenSSLContext(.client, minimumVersion: settings.minimumVersion)
        if settings.trustsSystem {
            guard unsafe SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
                throw .issuers(reason: OpenSSLError.popErrorText())
            }
        }
        if let issuers = settings.issuersPEM { try context.addTrustedIssuers(pem: issuers) }
        // A file of the system that is missing is no fault: there may be a directory.
        ERR_clear_error()
        context.enableVerification(mode: SSL_VERIFY_PEER)
        if !settings.protocols.isEmpty {
            let list = TLSApplicationProtocol.list(settings.protocols)
            guard unsafe SSL_CTX_set_alpn_protos(context.pointer, list, UInt32(list.count)) == 0
            else { throw .library(reason: OpenSSLError.popErrorText()) }
        }
        // Tickets are handed to the session's owner and not kept here.
        let mode = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
        context.control(SSL_CTRL_SET_SESS_CACHE_MODE, Int(mode))
        unsafe SSL_CTX_sess_set_new_cb(context.pointer) { ssl, ticket in
            guard let ssl = unsafe ssl, let ticket = unsafe ticket,
                let session = unsafe TLSSession.session(ssl: ssl)
            else { return 0 }
            return unsafe session.storeTicket(ticket: ticket) ? 1 : 0
        }
    }
}
