import Admin
import Ground
import HTTPRules
import Origin
import Telemetry
import Wire

/// What doors and fetches are told at the start, and again when settings change; filled from the
/// table of settings.
struct NodeSettings: Sendable {
    var headLimits = HeadLimits()
    /// The sites that are answered for beside the API for images.
    var sites = SiteTable.none
    /// What each of ``sites`` comes to, in their order.
    var sitePolicies: [SitePolicy] = []
    /// How images are answered that are asked for by their URLs.
    var images = ImagePolicies(
        SitePolicy(ImageRules(), ImageSettings(), objectBytesMax: 64 << 20))
    /// Images are answered for by the URLs of their origins.
    var servesImages = true
    /// Whose connections begin with the PROXY protocol, which says who the client is.
    var trustedProxies: [Network] = []
    /// Proxies whose X-Forwarded-For, -Proto and -Host say who asks, how, and for which host.
    var forwardedFrom: [Network] = []
    /// Who may use PURGE.
    var purgePermission = PurgePermission()
    /// Who may do what on the admin port.
    var adminAccess = AdminAccessPolicy()
    /// What a request has to know to be told how its answer came about; nil if none may.
    var decisionToken: [UInt8]?
    /// What images, and the sites that want it, are signed with; nil if anyone may ask.
    var signer: URLSigner?

    /// Bytes of a normalised URL.
    var urlBytesMax = 8 * 1024
    /// Bytes of a request's body, which is read and dropped.
    var requestBodyBytesMax: UInt64 = 1 << 20
    /// Ranges in one request.
    var rangesMax = 16
    /// Bytes of further requests that wait while one is answered.
    var pipelineBytesMax = 64 << 10

    var idleTimeout = Interval.seconds(60)
    var headTimeout = Interval.seconds(10)
    var bodyTimeout = Interval.seconds(30)
    /// How long a client may take not one byte of what waits for it.
    var sendTimeout = Interval.seconds(60)

    /// How clients are spoken to where TLS is spoken; nil for in clear text alone.
    var tls: TLSServerContext?
    /// The same for operators.
    var adminTLS: TLSServerContext?
    var handshakeTimeout = Interval.seconds(10)
    /// TLS handshakes at one time, on each loop.
    var handshakesMax = 1024
    /// Requests at one time on one connection of HTTP/2.
    var streamsMax = 128

    /// As whom a connection from `address` counts on the port of `side`: a proxy that says for whom
    /// it speaks has no share, which its clients have.
    func limiterKey(of address: IPAddress?, on side: RequestHandler.Plane)
        -> ConnectionLimiter.ClientKey
    {
        guard side == .data, let known = address?.unmapped,
            forwardedFrom.contains(where: { $0.contains(known) })
        else { return .init(address) }
        return .proxy(address)
    }

    /// Connections of clients.
    var connectionLimits = ConnectionLimiter.Limits(connectionsMax: 10_000)
    /// Connections of operators, who have a limit of their own: they look in when the clients' one
    /// is reached.
    static let adminConnectionLimits = ConnectionLimiter.Limits(
        connectionsMax: 64, reservedForLocal: 8)
    /// How long a connection to the admin port may last before a request on it has proven who asks.
    static let authenticationTimeout = Interval.seconds(10)
    var fetchesMax = 1024
    /// Hundredths of what is limited that one client may have, and one site or origin.
    var clientPercent = 25
    var originPercent = 75
    /// The same for requests with bodies, which their clients send as slowly as they like.
    static let uploadPercent = 50
    /// Bytes that are fetched in a minute for one client and that nobody reads.
    var clientUnreadBytesMax: UInt64 = 64 << 20
    /// Who may have how many of the fetches.
    var fetchShares: QuotaTable.Limits {
        QuotaTable.Limits(
            slotsMax: fetchesMax, clientPercent: clientPercent, originPercent: originPercent,
            uploadPercent: Self.uploadPercent)
    }
    /// Bytes of a request's body that must come in a second, beyond ``bodyTimeout``.
    var bodyRateMin = 1024
    var waitersMax = 100_000
    /// How long a request may wait for the head of its answer.
    var waitTimeout = Interval.seconds(60)
    /// How long a request that came through another node waits for a fetch that it did not cause,
    /// before it asks by itself: two nodes that ask each other, each for a client of its own, wait
    /// for each other otherwise.
    static let joinedWaitTimeout = Interval.seconds(5)
    /// The largest body that is kept.
    var objectBytesMax: UInt64 = 64 << 20
    /// Variants of one key at most.
    var variantsMax = 64
    /// How often uses in memory are told to the disk tier; nil for never.
    var touchInterval: Interval?

    // What follows is not set by operators: it balances throughput against what one connection can
    // hold.

    /// A body up to this size goes to the socket in one write; a larger one as the client takes it.
    var singleWriteBytesMax = 256 << 10
    /// Bytes handed to the socket at once of an answer that is given in pieces.
    var transferBytesMax = 128 << 10
    /// Of that, bytes of a body that is not yet in its chunks.
    var unchunkedBytesMax = 16 << 10
    /// No further request is answered while so much waits for the client.
    ///
    /// Heads wait in memory that is counted nowhere, and so do bodies that were encrypted: a
    /// thousand clients that ask and do not read hold this much each.
    static let queuedBytesMax = 32 << 10
    /// How far a body that is not kept may run ahead of its slowest reader: with room in memory,
    /// and without.
    var windowBytes = 256 << 10
    var windowBytesMin = 32 << 10
    /// How long, in all, a slow reader may hold up the others of a body that is not kept.
    var slowReaderTimeout = Interval.seconds(5)
    /// How long such a reader may take next to nothing while others wait for the origin.
    var contendedSlowReaderTimeout: Interval { Interval(nanoseconds: sendTimeout.nanoseconds / 12) }
    /// How long, and for how many bytes, an answer is fetched that nobody waits for any more.
    var unreadTimeout = Interval.seconds(5)
    var unreadBytesMax: UInt64 = 4 << 20
    /// How long, and for how many bytes, a client may go on sending after its last answer.
    var lingerTimeout = Interval.seconds(5)
    var lingerBytesMax = 1 << 20
}

/// Everything that one event loop takes over at once when settings change.
struct LoopSettings: Sendable {
    /// What the loop's origin client goes by.
    struct OriginChanges: Sendable {
        var settings: OriginSettings
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    var node: NodeSettings
    /// Nil if they are as they were.
    var origins: OriginChanges?
    /// Nil for no access log.
    var accessLog: AccessLine.Format?

    /// What `configuration` is for a loop, after a change of it.
    init(_ configuration: Configuration, _ budget: DescriptorBudget, _ change: ConfigurationChange)
    {
        node = NodeSettings(configuration, budget)
        accessLog = AccessLine.Format(configuration.accessLog)
        guard change.affects(.origins) || change.hasNewOriginTrust else { return }
        origins = OriginChanges(
            settings: OriginSettings(configuration, budget),
            addressGuard: AddressGuard(allowing: configuration.allowPrivateOrigins),
            patterns: configuration.allowOrigins)
    }
}
