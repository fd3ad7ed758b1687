package import Ground

/// Limits of the origin client; per event loop or per fetch where nothing else is said.
package struct OriginSettings: Hashable, Sendable {
    /// From the start of a fetch to a usable connection: name look-up and all addresses tried.
    package var connectLimit: Interval = .seconds(10)
    /// From the request to the end of the answer's head, interim answers included; from the last
    /// of the request's body that the origin took, if there is one.
    package var headLimit: Interval = .seconds(30)
    /// Between two reads that bring bytes of a body; does not run while the fetch is paused.
    package var idleLimit: Interval = .seconds(30)
    /// Bytes of a body that must come in a second, on the average of ``idleLimit``; 0 for any.
    package var bodyRateMin = 0
    /// From the start of a fetch to its end, pauses included.
    package var totalLimit: Interval = .seconds(600)
    /// How long a fetch may wait for a connection to its origin.
    package var queueLimit: Interval = .seconds(5)
    /// Redirects followed in one fetch; 0 for none.
    package var redirectsMax = 5
    /// Greatest size in bytes of an answer's body.
    package var bodyBytesMax: UInt64 = 1 << 30
    /// The forward proxy through which every connection goes; nil for none.
    package var proxy: ForwardProxy?
    /// Greatest size in bytes of an answer's head.
    package var headBytesMax = 64 * 1024
    /// Greatest number of field lines in an answer's head.
    package var headFieldsMax = 128
    /// Greatest number of interim (1xx) answers before the final one.
    package var interimResponsesMax = 100
    /// Greatest number of addresses of one name that are tried.
    package var addressesTriedMax = 8
    /// Greatest number of names looked up at once.
    package var lookupsMax = 256
    /// Greatest number of connections, idle ones included.
    package var connectionsMax = 4096
    /// Greatest number of idle connections to all origins together.
    package var idleConnectionsMax = 128
    /// Greatest number of idle connections to one origin.
    package var idleConnectionsPerOriginMax = 32
    /// How long a connection is kept idle.
    package var idleConnectionLimit: Interval = .seconds(55)
    /// Whom to believe over TLS; nil for the issuers of this machine.
    package var trustStore: OriginTrustStore?
    /// Greatest number of questions at one time on one connection of HTTP/2, if the origin allows
    /// as many.
    package var streamsMax = 128
    /// Size in bytes of one read from a connection.
    package var receiveBufferBytes = 64 * 1024
    /// The kernel's receive buffer of a connection in bytes, or the window of a stream; what a
    /// paused fetch can at most be handed late.
    package var receiveWindowBytes = 256 * 1024

    /// Of all loops together: what one origin may have, and what is remembered of names.
    package var admission = OriginAdmission.Settings(
        connectionsMax: 256, queueMax: 512,
        circuit: CircuitLimits(failures: 20, pause: .seconds(5)))
    package var dnsCache = DNSCache.Settings(
        lifetime: .seconds(30), failureLifetime: .seconds(2), namesMax: 10_000)

    package init() {}

    /// Questions of one loop that may wait for a connection to one origin which another opens: as
    /// many as may have one or wait for one where nothing is shared.
    var sharedWaitingMax: Int { admission.connectionsMax + admission.queueMax }
}

/// A forward proxy (RFC 9110 §9.3.6, CONNECT); whoever names it trusts it, and it is reached
/// whatever the address guard says.
package struct ForwardProxy: Hashable, Sendable {
    package var authority: OriginAuthority
    /// True if the proxy looks origins' names up, so that no address is seen here and the guard of
    /// names is the proxy's.
    package var resolvesNames: Bool

    package init(_ authority: OriginAuthority, resolvesNames: Bool) {
        self.authority = authority
        self.resolvesNames = resolvesNames
    }
}
