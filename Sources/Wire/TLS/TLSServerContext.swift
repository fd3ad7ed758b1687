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

/// What a TLS server shows and accepts.
package struct TLSServerSettings: Hashable, Sendable {
    /// The first is shown to clients that ask for no name or an unknown one.
    ///
    /// Of certificates for the same name with different kinds of keys, each client is shown one
    /// that it can verify.
    package var identities: [TLSIdentity]
    /// In the order of preference.
    package var protocols: [TLSApplicationProtocol]
    package var minimumVersion: TLSVersion
    /// The issuers (PEM) of which a client must show a certificate; nil if none is asked for.
    package var clientCAPEM: [UInt8]?

    package init(
        identities: [TLSIdentity],
        protocols: [TLSApplicationProtocol] = [.http2, .http11, .http10],
        minimumVersion: TLSVersion = .tls12, clientCAPEM: [UInt8]? = nil
    ) {
        self.identities = identities
        self.protocols = protocols
        self.minimumVersion = minimumVersion
        self.clientCAPEM = clientCAPEM
    }
}

/// Which certificates serve which names.
struct CertificateIndex {
    /// Sets of identities by number, each with one certificate for each kind of key; the first is
    /// that of the default.
    private(set) var sets: [[Int]] = []
    /// Which of ``sets`` serves a name.
    private(set) var exact: [String: Int] = [:]
    /// Which of ``sets`` serves all names with one label in front of this.
    private(set) var wildcards: [String: Int] = [:]

    /// A certificate that has the very name comes before one with a wildcard, and then the earlier
    /// before the later.
    init(_ identities: [ServerIdentity]) {
        let all = Array(identities.indices)
        let names = identities[0].names
        // Whoever asks for nothing gets the first certificate, or one for all the same names with
        // a key of another kind.
        let alike = all.filter { index in
            index == 0
                || !(names.exact + names.wildcards).isEmpty
                    && Set(identities[index].names.exact).isSuperset(of: names.exact)
                    && Set(identities[index].names.wildcards).isSuperset(of: names.wildcards)
        }
        _ = addSet(alike, of: identities)
        for index in all {
            for name in identities[index].names.exact where exact[name] == nil {
                let having = all.filter { identities[$0].names.exact.contains(name) }
                let covering = all.filter { identities[$0].names.covers(name) }
                exact[name] = addSet(having + covering, of: identities)
            }
            for name in identities[index].names.wildcards where wildcards[name] == nil {
                let having = all.filter { identities[$0].names.wildcards.contains(name) }
                wildcards[name] = addSet(having, of: identities)
            }
        }
    }

    /// The number of the set with the first of `candidates` for each kind of key.
    private mutating func addSet(_ candidates: [Int], of identities: [ServerIdentity]) -> Int {
        var kinds: Set<CInt> = []
        let set = candidates.filter { kinds.insert(identities[$0].certificate.keyKind).inserted }
        if let known = sets.firstIndex(of: set) { return known }
        sets.append(set)
        return sets.count - 1
    }
}
