package import Ground

/// Limits of the origin client; per event loop or per fetch unless stated otherwise.
package struct OriginSettings: Hashable, Sendable {
    /// Maximum time from the start of a fetch to a usable connection, including name look-up and
    /// all addresses.
    package var connectLimit: Interval = .seconds(10)
    /// Maximum time from the request, or from the last progress of its body, to the end of the
    /// response head, interim responses included.
    package var headLimit: Interval = .seconds(30)
    /// Maximum time between two reads that bring bytes of a body; suspended while the fetch is
    /// paused.
    package var idleLimit: Interval = .seconds(30)
    /// Minimum rate of a body in bytes per second, averaged over ``idleLimit``; 0 for no minimum.
    package var bodyRateMin = 0
    /// Maximum time from the start of a fetch to its end, pauses included.
    package var totalLimit: Interval = .seconds(600)
    /// Maximum time that a fetch waits for a slot to open a connection to its origin.
    ///
    /// While it waits for another fetch's connection, or for capacity on existing ones,
    /// ``connectLimit`` applies if it is longer.
    package var queueLimit: Interval = .seconds(5)
    /// Maximum number of redirects followed in one fetch; 0 for none.
    package var redirectsMax = 5
    /// Maximum size of a response body in bytes.
    package var bodyBytesMax: UInt64 = 1 << 30
    /// The forward proxy for all connections; `nil` for none.
    package var proxy: ForwardProxy?
    /// Maximum size of a response head in bytes.
    package var headBytesMax = 64 * 1024
    /// Maximum number of field lines in a response head.
    package var headFieldsMax = 128
    /// Maximum number of interim (1xx) responses before the final one.
    package var interimResponsesMax = 100
    /// Maximum number of addresses tried for one name.
    package var addressesTriedMax = 8
    /// Maximum number of concurrent name look-ups.
    package var lookupsMax = 256
    /// Maximum number of connections, idle ones included.
    package var connectionsMax = 4096
    /// Maximum number of idle connections to all origins together.
    package var idleConnectionsMax = 128
    /// Maximum number of idle connections to one origin.
    package var idleConnectionsPerOriginMax = 32
    /// Maximum time that a connection is kept idle.
    package var idleConnectionLimit: Interval = .seconds(55)
    /// The trust store for TLS; `nil` for the system's trust anchors.
    package var trustStore: OriginTrustStore?
    /// Maximum number of concurrent requests on one HTTP/2 connection, if the origin allows as
    /// many.
    package var streamsMax = 128
    /// Size of one read from a connection in bytes.
    package var receiveBufferBytes = 64 * 1024
    /// The kernel's receive buffer of a connection, or the window of a stream, in bytes.
    ///
    /// This bounds what a paused fetch may still receive later.
    package var receiveWindowBytes = 256 * 1024

    /// Node-wide limits of admission control for origins.
    package var admission = OriginAdmission.Settings(
        connectionsMax: 256, queueMax: 512,
        circuit: CircuitLimits(failures: 20, openInterval: .seconds(5)))
    /// Node-wide limits of the cache of name resolutions.
    package var dnsCache = DNSCache.Settings(
        lifetime: .seconds(30), failureLifetime: .seconds(2), namesMax: 10_000)

    /// Creates the default limits.
    package init() {}

    /// Maximum number of transactions of one loop that wait for a connection which another one
    /// opens.
    ///
    /// As many as may have a connection or wait for one without sharing.
    var sharedWaitingMax: Int { admission.connectionsMax + admission.queueMax }
}

/// A forward proxy (CONNECT, RFC 9110 §9.3.6).
///
/// The operator configures and trusts it; the address guard does not apply to it.
package struct ForwardProxy: Hashable, Sendable {
    /// The proxy's host and port.
    package var authority: OriginAuthority
    /// True if the proxy resolves origin names, so that this node sees no address and the proxy
    /// must guard against internal ones.
    package var resolvesNames: Bool

    /// Creates a proxy from its parts.
    package init(_ authority: OriginAuthority, resolvesNames: Bool) {
        self.authority = authority
        self.resolvesNames = resolvesNames
    }
}
