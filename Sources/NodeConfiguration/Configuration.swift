package import Admin
package import Ground
package import HTTPRules
package import Logging
package import Telemetry

/// All settings of a node, resolved, checked and typed; ``Setting/table`` documents each of them.
package struct Configuration: Sendable {
    /// The format of the access log.
    package enum AccessLogFormat: String, CaseIterable, Sendable {
        case off
        case combined
        case json
    }

    /// The format of the log on standard error.
    package enum LogFormat: String, CaseIterable, Sendable {
        /// Lines for people.
        case text
        case logfmt
        case json
    }

    /// The party that resolves origins' names when a forward proxy is used.
    package enum ProxyNameResolution: String, CaseIterable, Sendable {
        case node
        case proxy
    }

    // Node
    /// The addresses on which clients are served; at least one.
    package var listen: [ListenAddress]
    /// The address of the admin port, beyond loopback only if callers must authenticate; `nil` if
    /// it is closed.
    package var adminListen: ListenAddress?
    /// The path of the file with the operators' tokens; `nil` for no tokens.
    package var adminTokenFile: String? { values.path(.adminTokenFile) }
    /// The operators' tokens and their roles, as of the last load.
    package var adminGrants: [AdminAccessPolicy.Grant] = []
    /// The number of event loops; `nil` for one per core.
    package var loops: Int?
    /// The format of the access log, or off.
    package var accessLog: AccessLogFormat
    /// The least severe level that is logged.
    package var logLevel: Logger.Level
    /// The path of the file with the token that lets a request ask for cache decisions; `nil` for
    /// no token.
    package var decisionTokenFile: String?
    /// The token that lets a request ask for cache decisions, as of the last load, without the end
    /// of the line.
    package var decisionToken: [UInt8]?
    /// The path of the file with the keys of signed URLs; `nil` if images are served without
    /// signatures.
    package var signingKeyFile: String?
    /// The keys of signed URLs, as of the last load; empty without a file.
    package var signingKeys: [SigningKey] = []
    /// The time that requests in progress have after SIGTERM.
    package var drainTimeout: Interval

    // Memory
    /// The bytes of memory that entries may use, heads and bookkeeping included.
    package var memoryBytesMax: Int
    /// The largest number of entries in memory; `nil` for no limit.
    package var memoryEntriesMax: Int?
    /// True if the memory limit is lowered before the container or the machine runs out of memory.
    package var respondsToMemoryPressure: Bool
    /// The largest body in bytes that is stored; at most ``memoryBytesMax``.
    package var objectBytesMax: Int
    /// The largest number of variants that are stored per URL of a site.
    package var variantsMax: Int
    /// The freshness lifetime of images whose origin names none.
    package var defaultTTL: Interval

    // Disk
    /// The root directory of the disk cache; `nil` for none.
    package var cacheDirectory: String?
    /// The bytes of disk that the cache may use, everything included; 0 turns it off.
    package var diskBytesMax: UInt64
    /// The time after which an entry that was not requested leaves the disk; `nil` for no limit.
    package var ageLimit: Interval?
    /// The interval at which uses in memory are reported to the disk tier; `nil` for never.
    package var touchInterval: Interval?
    /// The bytes that may wait to be written to disk; at most a quarter of ``memoryBytesMax``.
    package var diskQueueBytesMax: Int
    /// The number of threads that read from the disk.
    package var diskThreads: Int

    // Origins
    /// The sites that are served.
    package var sites: SiteTable
    /// The patterns of the origins of images; others are refused.
    package var allowOrigins: [OriginPattern]
    /// The largest number of pixels of an image; `nil` for no limit.
    package var pixelsMax: UInt64?
    /// The largest number of redirects followed in one fetch.
    package var originRedirectsMax: Int
    /// The time limit for a connection to an origin to be established.
    package var originConnectTimeout: Interval
    /// The time limit from a request to an origin to the end of its response's head.
    package var originFirstByteTimeout: Interval
    /// The longest time without a byte of an origin's body.
    package var originIdleTimeout: Interval
    /// The time limit for one fetch in all.
    package var originTotalTimeout: Interval
    /// The time for which an unused connection to an origin is kept; zero for none.
    package var originKeepalive: Interval
    /// The largest number of unused connections per origin and event loop.
    package var originIdleConnectionsMax: Int
    /// The largest number of connections to one origin, over all event loops.
    package var originConnectionsMax: Int
    /// The largest number of fetches that wait for a connection to one origin.
    package var originQueueMax: Int
    /// The time limit for a fetch to wait for a connection to its origin.
    package var originQueueTimeout: Interval
    /// The number of failures that open an origin's circuit breaker; `nil` for never.
    package var originCircuitFailures: Int?
    /// The time for which a circuit breaker stays open at first.
    package var originCircuitTime: Interval
    /// The largest head in bytes of an origin's response.
    package var originHeadBytesMax: Int
    /// The largest number of field lines in the head of an origin's response.
    package var originFieldsMax: Int
    /// The largest body in bytes of an origin's response, stored or not.
    package var originBodyBytesMax: UInt64
    /// The party that resolves origins' names behind a forward proxy.
    package var originProxyNames: ProxyNameResolution
    /// The time for which resolved addresses are used.
    package var dnsTTL: Interval
    /// The time for which a failed look-up is not repeated.
    package var dnsFailureTTL: Interval
    /// The largest number of names whose addresses are cached.
    package var dnsNamesMax: Int
    /// The largest number of concurrent fetches.
    package var fetchesMax: Int
    /// The largest number of connections per client; `nil` for the default, which exempts loopback.
    package var connectionsPerClient: Int?
    /// The percentage of each limited resource that one client may use.
    package var clientPercent: Int
    /// The percentage of each limited resource that one site or origin may use.
    package var originPercent: Int
    /// The bytes that may be fetched per minute for one client without being read.
    package var clientUnreadBytesMax: Int
    /// The lowest rate of an origin's body in bytes per second; 0 for no limit.
    package var originRateMin: Int
    /// The lowest rate of a request's body in bytes per second; 0 for no limit.
    package var bodyRateMin: Int
    /// The largest number of requests that wait for fetches.
    package var waitersMax: Int
    /// The time limit for a request to wait for the head of its response.
    package var waitTimeout: Interval

    // Clients
    /// The digests of the tokens for PURGE, as of the last load; empty without a file.
    package var purgeTokens: [TokenDigest] = []
    /// The largest number of client connections; `nil` for as many as the descriptor limit allows.
    package var connectionsMax: Int?
    /// The bytes of further requests that are buffered while one is processed.
    package var pipelineBytesMax: Int
    /// The largest head of a request in bytes.
    package var requestHeadBytesMax: Int
    /// The largest number of field lines in a request.
    package var requestFieldsMax: Int
    /// The largest body of a request in bytes.
    package var requestBodyBytesMax: Int
    /// The longest URL in bytes; at most ``requestHeadBytesMax``.
    package var urlBytesMax: Int
    /// The largest number of ranges in a request.
    package var rangesMax: Int
    /// The longest time that a client connection may be unused.
    package var idleTimeout: Interval
    /// The time limit for the head of a request.
    package var headTimeout: Interval
    /// The time limit from the end of a request's head to the end of its body.
    package var bodyTimeout: Interval
    /// The longest time in which a client reads nothing of its response.
    package var sendTimeout: Interval
    /// The largest number of concurrent requests on one HTTP/2 connection.
    package var streamsMax: Int

    // TLS
    /// The settings of TLS.
    package var tls: TLSConfiguration

    // Cluster
    /// The settings of the cluster.
    package var cluster: ClusterConfiguration

    /// The warnings for the operator, which do not prevent the start; one line each.
    package var warnings: [String]

    /// The values that the properties above were derived from.
    private(set) var values: ConfigurationValues
    /// The values as given, before they were adjusted to each other.
    private(set) var declaredValues: ConfigurationValues
}

extension Configuration {
    /// Reads the values of request fields that are given as files of their own.
    mutating func readFieldFiles() throws(ConfigurationError) {
        try declaredValues.readFieldFiles()
        (values.siteBlocks, values.images) = (declaredValues.siteBlocks, declaredValues.images)
        sites = SiteTable(values.sites.map(\.site))
    }

    /// Creates a configuration from reconciled values.
    ///
    /// - Parameters:
    ///   - values: the values after reconciliation.
    ///   - declared: the values as given.
    ///   - warnings: warnings in addition to those of the values.
    init(_ values: ConfigurationValues, declared: ConfigurationValues, warnings: [String]) {
        self.values = values
        self.declaredValues = declared
        listen = values.addresses(.listen)
        adminListen = values.addresses(.adminListen).first
        loops = values.countUnlessZero(.loops)
        accessLog = values.choice(.accessLog)
        logLevel = values.choice(.logLevel)
        decisionTokenFile = values.path(.decisionTokenFile)
        signingKeyFile = values.path(.signingKeyFile)
        drainTimeout = values.interval(.drainTimeout)
        memoryBytesMax = values.bytes(.memoryLimit)
        memoryEntriesMax = values.countUnlessZero(.memoryEntries)
        respondsToMemoryPressure = values.isOn(.memoryPressure)
        objectBytesMax = values.bytes(.objectLimit)
        variantsMax = values.count(.variantsLimit)
        defaultTTL = values.interval(.defaultTTL)
        cacheDirectory = values.path(.cacheDir)
        diskBytesMax = UInt64(values.bytes(.diskLimit))
        ageLimit = values.intervalUnlessZero(.ageLimit)
        touchInterval = values.intervalUnlessZero(.touchInterval)
        diskQueueBytesMax = min(values.bytes(.diskQueueLimit), memoryBytesMax / 4)
        diskThreads = values.count(.diskThreads)
        sites = SiteTable(values.sites.map(\.site))
        allowOrigins = values.originPatterns(.allowOrigin)
        pixelsMax = values.countUnlessZero(.pixelLimit).map(UInt64.init)
        originRedirectsMax = values.count(.originRedirects)
        originConnectTimeout = values.interval(.originConnectTimeout)
        originFirstByteTimeout = values.interval(.originFirstByteTimeout)
        originIdleTimeout = values.interval(.originIdleTimeout)
        originTotalTimeout = values.interval(.originTotalTimeout)
        originKeepalive = values.interval(.originKeepalive)
        originIdleConnectionsMax = values.count(.originIdleConnections)
        originConnectionsMax = values.count(.originConnections)
        originQueueMax = values.count(.originQueueLimit)
        originQueueTimeout = values.interval(.originQueueTimeout)
        originCircuitFailures = values.countUnlessZero(.originCircuitFailures)
        originCircuitTime = values.interval(.originCircuitTime)
        originHeadBytesMax = values.bytes(.originHeadLimit)
        originFieldsMax = values.count(.originFieldsLimit)
        originBodyBytesMax = UInt64(values.bytes(.originBodyLimit))
        originProxyNames = values.choice(.originProxyNames)
        dnsTTL = values.interval(.dnsTTL)
        dnsFailureTTL = values.interval(.dnsFailureTTL)
        dnsNamesMax = values.count(.dnsNamesLimit)
        fetchesMax = values.count(.fillsLimit)
        connectionsPerClient = values.countUnlessZero(.connectionsPerClient)
        clientPercent = values.count(.clientShare)
        originPercent = values.count(.originShare)
        clientUnreadBytesMax = values.bytes(.clientUnreadLimit)
        originRateMin = values.bytes(.originMinRate)
        bodyRateMin = values.bytes(.bodyMinRate)
        waitersMax = values.count(.waitersLimit)
        waitTimeout = values.interval(.waitTimeout)
        connectionsMax = values.countUnlessZero(.connectionsLimit)
        pipelineBytesMax = values.bytes(.pipelineLimit)
        requestHeadBytesMax = values.bytes(.requestHeadLimit)
        requestFieldsMax = values.count(.requestFieldsLimit)
        requestBodyBytesMax = values.bytes(.requestBodyLimit)
        urlBytesMax = values.bytes(.urlLimit)
        rangesMax = values.count(.rangesLimit)
        idleTimeout = values.interval(.idleTimeout)
        headTimeout = values.interval(.headTimeout)
        bodyTimeout = values.interval(.bodyTimeout)
        sendTimeout = values.interval(.sendTimeout)
        streamsMax = values.count(.streamsLimit)
        tls = TLSConfiguration(values)
        cluster = ClusterConfiguration(values)
        self.warnings = warnings + values.warnings
    }
}

extension Configuration {
    /// The networks whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host are trusted.
    package var forwardedFrom: [Network] { values.networks(.forwardedFrom) }

    /// The settings of images that are requested by URL.
    package var images: ImageBlock { values.images }

    /// True if raster images with a Content-Encoding are served, without inspection.
    package var takesCodedImages: Bool { values.isOn(.codedImages) }

    /// The networks whose connections begin with the PROXY protocol.
    package var trustedProxies: [Network] { values.networks(.trustedProxy) }

    /// The networks that may use PURGE without a token.
    package var purgeNetworks: [Network] { values.networks(.purgeFrom) }

    /// The path of the file with the tokens for PURGE; `nil` for no tokens.
    package var purgeTokenFile: String? { values.path(.purgeTokenFile) }

    /// The format of the log on standard error.
    package var logFormat: LogFormat { values.choice(.logFormat) }

    /// The media types that are served in addition to images, in lower case.
    package var allowTypes: [String] { values.mediaTypes(.allowType) }

    /// The private networks that origins may be in.
    package var allowPrivateOrigins: [Network] { values.networks(.allowPrivateOrigin) }

    /// The forward proxy through which origins are reached; `nil` for none.
    package var originProxy: (host: String, port: UInt16)? { values.hostPort(.originProxy) }
}

extension Configuration {
    /// Resolves and checks all settings; for each, flags take precedence over the environment, the
    /// file and the default.
    ///
    /// A list is taken whole from the first source that gives it. An empty variable counts as not
    /// given.
    ///
    /// - Parameters:
    ///   - flags: the texts of each flag in the order given, by the setting's name.
    ///   - environment: the whole environment of the process.
    ///   - file: the YAML file, its name as the operator wrote it; `nil` for none.
    ///
    /// - Returns: settings that are consistent with each other.
    ///
    /// - Throws: all faults. If the file cannot be read as one mapping, only that is reported.
    ///   Settings are checked against each other only if each of them has a value.
    package static func check(
        flags: [String: [String]], environment: [String: String],
        file: (name: String, text: String)?
    ) throws(ConfigurationErrors) -> Configuration {
        let layers = try ConfigurationLayers(flags: flags, environment: environment, file: file)
        var faults = layers.file?.errors ?? []
        var given = ConfigurationValues()
        given.siteBlocks = layers.file?.sites ?? []
        given.images = layers.file?.images ?? ImageBlock()
        for setting in Setting.table {
            do throws(SettingError) {
                let (parsed, source) = try layers.values(of: setting)
                given.set(setting.name, parsed, from: source)
            } catch {
                faults.append(.invalidSetting(error))
            }
        }
        if let faults = ConfigurationErrors(faults) { throw faults }
        return try Configuration(reconciling: given, warnings: layers.warnings)
    }

    /// Checks the given settings against each other and creates a configuration from them.
    init(
        reconciling given: ConfigurationValues, warnings: [String]
    ) throws(ConfigurationErrors) {
        var values = given
        if let faults = ConfigurationErrors(values.reconcile()) { throw faults }
        self.init(values, declared: given, warnings: warnings)
    }
}
