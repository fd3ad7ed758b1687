import COpenSSL
import Ground

/// The shared configuration of a TLS server's sessions: certificates, versions, ticket keys.
///
/// Any number of threads may create sessions from it. Only its ticket keys change; to change
/// certificates, create another context for new sessions, and let existing ones finish with theirs.
/// A ticket is accepted by every context that has its key and requires the same client
/// certificates.
package final class TLSServerContext: Sendable {
    let settings: TLSServerSettings
    private let identities: [ServerIdentity]
    /// One context for each set of certificates that some name needs; index 0 is the default.
    private let contexts: [OpenSSLContext]
    /// The index into ``contexts`` for a name in canonical form.
    private let exact: [String: Int]
    /// The index into ``contexts`` for all names with one label more than the key.
    private let wildcards: [String: Int]
    private let tickets: SharedTicketKeys

    /// Parses all certificates and keys.
    ///
    /// The context resumes no sessions until it has ticket keys.
    ///
    /// - Throws: ``TLSSetupError``.
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

    /// Replaces the keys that encrypt the tickets of all sessions; thread-safe.
    package func setTicketKeys(_ keys: TicketKeys) {
        tickets.current = keys
    }

    /// The keys that encrypt tickets; `nil` before the first ones are set.
    var ticketKeys: TicketKeys? { tickets.current }

    /// The context that a session starts with.
    var defaultContext: OpenSSLContext { contexts[0] }

    /// Returns the context for `name`, which is in canonical form: by the exact name, then by a
    /// wildcard, else the default.
    func context(for name: String) -> OpenSSLContext {
        if let index = exact[name] { return contexts[index] }
        if let parent = CertificateNames.parent(of: name), let index = wildcards[parent] {
            return contexts[index]
        }
        return defaultContext
    }

    /// Returns the OCSP response for `certificate`, one of this context's; `nil` if there is none.
    func ocsp(for certificate: OpaquePointer) -> [UInt8]? {
        identities.first { unsafe $0.certificate.pointer == certificate }?.ocspDER
    }

    /// Creates a context for the settings, without certificates.
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
            // Sessions without such a client certificate must not be resumed here.
            belongs = sha256(issuers.span)
        }
        try context.setSessionIDContext(sessions: belongs)
        return context
    }
}

/// The certificates of a TLS server, and the parameters that it accepts.
package struct TLSServerSettings: Hashable, Sendable {
    /// The certificates with their keys; the first is the default for clients that send no name or
    /// an unknown one.
    ///
    /// If several certificates for a name have different kinds of keys, each client gets one that
    /// it can verify.
    package var identities: [TLSIdentity]
    /// The application protocols in order of preference.
    package var protocols: [TLSApplicationProtocol]
    /// The lowest version of TLS that is accepted.
    package var minimumVersion: TLSVersion
    /// The issuers in PEM of required client certificates; `nil` if none is required.
    package var clientCAPEM: [UInt8]?

    /// Creates settings from their parts.
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

/// The assignment of certificates to names.
struct CertificateIndex {
    /// The sets of identities by index, each with one certificate per kind of key; the first is the
    /// default set.
    private(set) var sets: [[Int]] = []
    /// The index into ``sets`` for a name.
    private(set) var exact: [String: Int] = [:]
    /// The index into ``sets`` for all names with one label before the key.
    private(set) var wildcards: [String: Int] = [:]

    /// Assigns certificates: an exact name takes precedence over a wildcard, and then earlier over
    /// later.
    init(_ identities: [ServerIdentity]) {
        let all = Array(identities.indices)
        let names = identities[0].names
        // Without a server name, the first certificate is used, or one for all the same names with
        // another kind of key.
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

    /// Returns the index of the set with the first of `candidates` for each kind of key.
    private mutating func addSet(_ candidates: [Int], of identities: [ServerIdentity]) -> Int {
        var kinds: Set<CInt> = []
        let set = candidates.filter { kinds.insert(identities[$0].certificate.keyKind).inserted }
        if let known = sets.firstIndex(of: set) { return known }
        sets.append(set)
        return sets.count - 1
    }
}
