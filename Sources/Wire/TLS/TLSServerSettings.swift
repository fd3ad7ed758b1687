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
