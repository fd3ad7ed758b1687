package import Ground

/// Limits of the origin client; per event loop or per fetch unless stated otherwise.
package struct OriginSettings: Hashable, Sendable {
    /// Maximum time from the start of a fetch to a usable connection, including name look-up and
    /// all addresses.
    package var connectLimit: Interval
    /// Maximum time from the request, or from the last progress of its body, to the end of the
    /// response head, interim responses included.
    package var headLimit: Interval
    /// Maximum time between two reads that bring bytes of a body; suspended while the fetch is
    /// paused.
    package var idleLimit: Interval
    /// Minimum rate of a body in bytes per second, averaged over ``idleLimit``; 0 for no minimum.
    package var bodyRateMin: Int
    /// Maximum time from the start of a fetch to its end, pauses included.
    package var totalLimit: Interval
    /// Maximum time that a fetch waits for a slot to open a connection to its origin.
    ///
    /// While it waits for another fetch's connection, or for capacity on existing ones,
    /// ``connectLimit`` applies if it is longer.
    package var queueLimit: Interval
    /// Maximum number of redirects followed in one fetch; 0 for none.
    package var redirectsMax: Int
    /// Maximum size of a response body in bytes.
    package var bodyBytesMax: UInt64
    /// The forward proxy for all connections; `nil` for none.
    package var proxy: ForwardProxy?
    /// Maximum size of a response head in bytes.
    package var headBytesMax: Int
    /// Maximum number of field lines in a response head.
    package var headFieldsMax: Int
    /// Maximum number of interim (1xx) responses before the final one.
    package var interimResponsesMax = 100
    /// Maximum number of addresses tried for one name.
    package var addressesTriedMax = 8
    /// Maximum number of concurrent name look-ups.
    package var lookupsMax = 256
    /// Maximum number of connections, idle ones included.
    package var connectionsMax: Int
    /// Maximum number of idle connections to all origins together.
    package var idleConnectionsMax: Int
    /// Maximum number of idle connections to one origin.
    package var idleConnectionsPerOriginMax: Int
    /// Maximum time that a connection is kept idle.
    package var idleConnectionLimit: Interval
    /// The trust store for TLS; `nil` for the system's trust anchors.
    package var trustStore: OriginTrustStore?
    /// Maximum number of concurrent requests on one HTTP/2 connection, if the origin allows as
    /// many.
    package var streamsMax = 128
    /// Size of one read from a connection in bytes, which a stalled client can retain.
    package var receiveBufferBytes = 16 << 10
    /// The kernel's receive buffer of a connection, or the window of a stream, in bytes.
    ///
    /// This bounds what may still arrive for a paused fetch.
    package var receiveWindowBytes = 128 << 10

    /// Node-wide limits of admission control for origins.
    package var admission: OriginAdmission.Settings
    /// Node-wide limits of the cache of name resolutions.
    package var dnsCache: DNSCache.Settings

    /// Creates the limits from those that are configured; there is no proxy, and the trust anchors
    /// are the system's.
    package init(
        connectLimit: Interval, headLimit: Interval, idleLimit: Interval, bodyRateMin: Int,
        totalLimit: Interval, queueLimit: Interval, redirectsMax: Int, bodyBytesMax: UInt64,
        headBytesMax: Int, headFieldsMax: Int, connectionsMax: Int, idleConnectionsMax: Int,
        idleConnectionsPerOriginMax: Int, idleConnectionLimit: Interval,
        admission:
            OriginAdmission.Settings, dnsCache: DNSCache.Settings
    ) {
        self.connectLimit = connectLimit
        self.headLimit = headLimit
        self.idleLimit = idleLimit
        self.bodyRateMin = bodyRateMin
        self.totalLimit = totalLimit
        self.queueLimit = queueLimit
        self.redirectsMax = redirectsMax
        self.bodyBytesMax = bodyBytesMax
        self.headBytesMax = headBytesMax
        self.headFieldsMax = headFieldsMax
        self.connectionsMax = connectionsMax
        self.idleConnectionsMax = idleConnectionsMax
        self.idleConnectionsPerOriginMax = idleConnectionsPerOriginMax
        self.idleConnectionLimit = idleConnectionLimit
        self.admission = admission
        self.dnsCache = dnsCache
    }

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
