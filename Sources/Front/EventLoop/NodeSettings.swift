import Admin
import Ground
import HTTPRules
package import NodeConfiguration
import Origin
import Telemetry
import Wire

/// Settings of handlers and fetches, derived from the configuration table at start and on each
/// reload.
package struct NodeSettings: Sendable {
    /// Limits of request heads.
    var headLimits: HeadLimits
    /// The configured sites, served beside the image API.
    var sites: SiteTable
    /// Policies of ``sites``, in the same order.
    var sitePolicies: [SitePolicy]
    /// Policies of images requested by their URLs.
    var images: ImagePolicies
    /// True if the image API serves images by the URLs of their origins.
    var servesImages: Bool
    /// Networks whose connections begin with a PROXY protocol header naming the client.
    var trustedProxies: [Network]
    /// Networks of proxies whose X-Forwarded-For, -Proto and -Host are trusted.
    var forwardedFrom: [Network]
    /// Permission to use the PURGE method.
    var purgePermission: PurgePermission
    /// Permissions on the admin port.
    var adminAccess: AdminAccessPolicy
    /// Token that a request must carry to receive the cache decision in its response; `nil`
    /// disables this.
    var decisionToken: [UInt8]?
    /// Verifier of signed URLs; `nil` without signing keys, when images need no signature, and
    /// sites that require one refuse all requests.
    var signer: URLSigner?

    /// Maximum size of a normalised URL, in bytes.
    var urlBytesMax: Int
    /// Maximum size of a request body that is not forwarded, in bytes.
    var requestBodyBytesMax: UInt64
    /// Maximum number of ranges in a request.
    var rangesMax: Int
    /// Maximum size of pipelined requests that wait during a response, in bytes.
    var pipelineBytesMax: Int

    /// Time a connection may be idle between requests.
    var idleTimeout: Interval
    /// Time limit for a request head, from its first byte.
    var headTimeout: Interval
    /// Time limit for a request body; for a forwarded one, ``bodyRateMin`` extends it.
    var bodyTimeout: Interval
    /// Maximum time without read progress by a client.
    var sendTimeout: Interval

    /// TLS context of the data port; `nil` for plain connections.
    var tls: TLSServerContext?
    /// TLS context of the admin port; `nil` for plain connections.
    var adminTLS: TLSServerContext?
    /// Time limit for a TLS handshake.
    var handshakeTimeout: Interval
    /// Maximum number of concurrent TLS handshakes on each loop.
    var handshakesMax: Int
    /// Maximum number of concurrent streams on an HTTP/2 connection.
    var streamsMax: Int

    /// Returns the key under which a connection from `address` is counted: on the data port, a
    /// trusted proxy has no limit of its own, because its clients are limited.
    func limiterKey(of address: IPAddress?, on side: Plane)
        -> ConnectionLimiter.ClientKey
    {
        guard side == .data, let known = address?.unmapped,
            forwardedFrom.contains(where: { $0.contains(known) })
        else { return .init(address) }
        return .proxy(address)
    }

    /// Limits of client connections.
    package var connectionLimits: ConnectionLimiter.Limits
    /// Limits of admin connections, separate so that operators can connect when the clients' limit
    /// is reached.
    static let adminConnectionLimits = ConnectionLimiter.Limits(
        connectionsMax: 64, reservedForLocal: 8)
    /// Time within which a request on an admin connection must have authenticated.
    static let authenticationTimeout = Interval.seconds(10)
    /// Maximum number of concurrent fetches from origins.
    var fetchesMax: Int
    /// Share of the fetches that one client may use, in percent.
    var clientPercent: Int
    /// Share of the fetches that one site or origin may use, in percent.
    var originPercent: Int
    /// Share of the fetches for requests with bodies, in percent; their clients may send slowly.
    static let uploadPercent = 50
    /// Bytes per minute that may be fetched for one client and not read by any.
    var clientUnreadBytesMax: UInt64
    /// Limits of the fetches for each kind of holder.
    var fetchShares: QuotaTable.Limits {
        QuotaTable.Limits(
            slotsMax: fetchesMax, clientPercent: clientPercent, originPercent: originPercent,
            uploadPercent: Self.uploadPercent)
    }
    /// Minimum rate of a request body, in bytes per second, beyond ``bodyTimeout``.
    var bodyRateMin: Int
    /// Maximum number of requests that wait for responses.
    var waitersMax: Int
    /// Maximum time a request waits for the response head.
    var waitTimeout: Interval
    /// Maximum time a request relayed by another node waits for a fetch that it did not cause,
    /// before it fetches independently.
    ///
    /// Otherwise two nodes that query each other, each for a client of its own, could wait for each
    /// other.
    static let joinedWaitTimeout = Interval.seconds(5)
    /// Maximum size of a body that is stored, in bytes.
    var objectBytesMax: UInt64
    /// Maximum number of variants of one key.
    var variantsMax: Int
    /// Interval at which uses of entries in memory are reported to the disk tier and peers; `nil`
    /// for never.
    var touchInterval: Interval?

    // The following values are not configurable; they balance throughput against the memory that
    // one connection can hold.

    /// Maximum size of a body that is handed to the transport at once, in bytes; a larger one
    /// follows as the client reads it.
    var singleWriteBytesMax = 256 << 10
    /// Bytes of a response sent in pieces that are handed to the transport at once.
    var transferBytesMax = 128 << 10
    /// Maximum bytes that are handed to the transport at once from the part of a body that is not
    /// yet in its chunks.
    var unchunkedBytesMax = 16 << 10
    /// Output backlog, in bytes, above which no further request of the connection is processed.
    ///
    /// Heads, and bodies that were encrypted, wait in memory that no budget counts: a thousand
    /// clients that send requests and do not read the responses hold this much each.
    static let queuedBytesMax = 32 << 10
    /// Bytes that a body that is not kept may run ahead of its slowest reader, with capacity in
    /// memory.
    var windowBytes = 256 << 10
    /// The window used without capacity in memory, in bytes.
    var windowBytesMin = 32 << 10
    /// Total time for which a slow reader may delay the other readers of a body that is not kept.
    var slowReaderTimeout = Interval.seconds(5)
    /// Time for which a reader of a body that is not kept may read next to nothing while other
    /// requests wait for the origin.
    var contendedSlowReaderTimeout: Interval { Interval(nanoseconds: sendTimeout.nanoseconds / 12) }
    /// Time for which a fetch without readers continues.
    var unreadTimeout = Interval.seconds(5)
    /// Bytes up to which a fetch without readers continues.
    var unreadBytesMax: UInt64 = 4 << 20
    /// Time for which input is discarded after the last response.
    var lingerTimeout = Interval.seconds(5)
    /// Bytes of input that are discarded after the last response.
    var lingerBytesMax = 1 << 20
}

/// Everything that an event loop adopts at once when settings change.
package struct LoopSettings: Sendable {
    /// New settings of the loop's origin client.
    struct OriginChanges: Sendable {
        var settings: OriginSettings
        /// Guard that refuses addresses of private networks.
        var addressGuard: AddressGuard
        /// Patterns of the origins that may be contacted.
        var patterns: [OriginPattern]
    }

    /// Settings of handlers and fetches.
    var node: NodeSettings
    /// Changes for the origin client; `nil` if there are none.
    var origins: OriginChanges?
    /// Format of the access log; `nil` if it is disabled.
    var accessLog: AccessLine.Format?

    /// Creates the settings of a loop from `configuration`, after `change`.
    package init(
        _ configuration: Configuration, _ budget: DescriptorBudget, _ change: ConfigurationChange
    ) {
        node = NodeSettings(configuration, budget)
        accessLog = AccessLine.Format(configuration.accessLog)
        guard change.affects(OriginSection.self) || change.hasNewOriginTrust else { return }
        origins = OriginChanges(
            settings: OriginSettings(configuration, budget),
            addressGuard: AddressGuard(allowing: configuration.allowPrivateOrigin),
            patterns: configuration.allowOrigin)
    }
}
