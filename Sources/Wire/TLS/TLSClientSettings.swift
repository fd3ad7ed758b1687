/// Whom a TLS client believes, and what it offers.
///
/// Nothing switches verification off.
package struct TLSClientSettings: Hashable, Sendable {
    /// The issuers of this machine are trusted.
    package var trustsSystem: Bool
    /// Further issuers (PEM), or the only ones; any certificate among them may end a chain.
    package var issuersPEM: [UInt8]?
    /// If there are any, the other side must have one of these keys; see ``TLSPin``.
    package var pins: [TLSPin]
    package var minimumVersion: TLSVersion
    /// In the order of preference; none is offered if this is empty.
    package var protocols: [TLSApplicationProtocol]

    package init(
        trustsSystem: Bool = true, issuersPEM: [UInt8]? = nil, pins: [TLSPin] = [],
        minimumVersion: TLSVersion = .tls12,
        protocols: [TLSApplicationProtocol] = [.http2, .http11]
    ) {
        self.trustsSystem = trustsSystem
        self.issuersPEM = issuersPEM
        self.pins = pins
        self.minimumVersion = minimumVersion
        self.protocols = protocols
    }
}
