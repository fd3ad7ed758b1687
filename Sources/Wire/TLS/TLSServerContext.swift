import COpenSSL
import Ground

/// What the sessions of a TLS server share: certificates, versions, ticket keys.
///
/// Any number of threads may make sessions of it. It does not change but for its ticket keys; for
/// other certificates make another one for new sessions, and let the old ones end with theirs. A
/// ticket is accepted by every context that has adopted its key and asks for the same certificates
/// of clients.
package final class TLSServerContext: Sendable {
    let settings: TLSServerSettings
    private let identities: [ServerIdentity]
    /// One for each set of certificates that some name needs; number 0 is the default.
    private let contexts: [OpenSSLContext]
    /// Which of ``contexts`` serves a name, in its one spelling.
    private let exact: [String: Int]
    /// The same for all names of one label more than this.
    private let wildcards: [String: Int]
    private let tickets: SharedTicketKeys

    /// Reads all certificates and keys.
    ///
    /// Before it has adopted ticket keys, it resumes no session.
    package init(_ settings: TLSServerSettings) throws(TLSSetupError) {
        var identities: [ServerIdentity] = []
        for (number, identity) in settings.identities.enumerated() {
            identities.append(try ServerIdentity(identity, number: number))
        }
        guard !identities.isEmpty else { throw .noIdentity }
        let choice = CertificateIndex(identities)
        var contexts: [OpenSSLContext] = []
        for set in choice.sets {
            let context = try Self.context(settings)
            for number in set { try identities[number].install(in: context) }
            contexts.append(context)
        }
        self.settings = settings
        self.identities = identities
        self.contexts = contexts
        exact = choice.exact
        wildcards = choice.wildcards
        tickets = try SharedTicketKeys()
    }

    /// Seals the tickets of all sessions with these keys from now on.
    package func setTicketKeys(_ keys: TicketKeys) {
        tickets.current = keys
    }

    /// What sessions seal their tickets with.
    var ticketKeys: TicketKeys? { tickets.current }

    /// The context that a session begins with.
    var defaultContext: OpenSSLContext { contexts[0] }

    /// The context whose certificates are for `name`, which is in its one spelling.
    func context(for name: String) -> OpenSSLContext {
        if let index = exact[name] { return contexts[index] }
        if let parent = CertificateNames.parent(of: name), let index = wildcards[parent] {
            return contexts[index]
        }
        return defaultContext
    }

    /// The answer about `certificate`, one of this context's, that it is not revoked.
    func ocsp(for certificate: OpaquePointer) -> [UInt8]? {
        identities.first { unsafe $0.certificate.pointer == certificate }?.ocspDER
    }

    private static func context(_ settings: TLSServerSettings) throws(TLSSetupError)
        -> OpenSSLContext
    {
        let context = try OpenSSLContext(.server, minimumVersion: settings.minimumVersion)
        unsafe SSL_CTX_set_timeout(context.pointer, Int(TicketKeys.lifetime.seconds))
        HandshakeCallbacks.install(in: context)
        TicketEncryption.install(in: context)
        var belongs: [UInt8] = Array("nuthatch".utf8)
        if let issuers = settings.clientCAPEM {
            try context.addTrustedIssuers(pem: issuers)
            try context.addClientIssuers(forIssuersOf: issuers)
            context.enableVerification(mode: SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
            // A session in which no such certificate was shown must not be resumed here.
            belongs = sha256(issuers.span)
        }
        try context.setSessionIDContext(sessions: belongs)
        return context
    }
}
