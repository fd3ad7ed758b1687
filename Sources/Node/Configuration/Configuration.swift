package import Admin
package import Ground
package import HTTPRules
package import Logging
package import Telemetry

/// Every setting of a node, resolved, checked and typed; see ``Setting/table`` for their meanings.
package struct Configuration: Sendable {
    /// The form of the access log.
    package enum AccessLogFormat: String, CaseIterable, Sendable {
        case off
        case combined
        case json
    }

    /// How the log on standard error is written.
    package enum LogFormat: String, CaseIterable, Sendable {
        /// For people.
        case text
        case logfmt
        case json
    }

    /// Who turns origins' names into addresses where there is a forward proxy.
    package enum ProxyNameResolution: String, CaseIterable, Sendable {
        case node
        case proxy
    }

    // Node
    /// At least one.
    package var listen: [ListenAddress]
    /// Beyond loopback only where everybody has to prove who they are; nil if it is not opened.
    package var adminListen: ListenAddress?
    /// Nil for no tokens.
    package var adminTokenFile: String? { values.path(.adminTokenFile) }
    /// What the tokens are good for that the file held when it was last read.
    package var adminGrants: [AdminAccessPolicy.Grant] = []
    /// Nil for one per core.
    package var loops: Int?
    package var accessLog: AccessLogFormat
    package var logLevel: Logger.Level
    /// Nil for no token.
    package var decisionTokenFile: String?
    /// What the file held when it was last read, without the line's end.
    package var decisionToken: [UInt8]?
    /// Nil for images that are served to whoever asks.
    package var signingKeyFile: String?
    /// What the file held when it was last read; empty without one.
    package var signingKeys: [SigningKey] = []
    package var drainTimeout: Interval

    // Memory
    package var memoryBytesMax: Int
    /// Nil for no limit.
    package var memoryEntriesMax: Int?
    /// Whether memory is given up before it runs out.
    package var respondsToMemoryPressure: Bool
    /// Never above ``memoryBytesMax``.
    package var objectBytesMax: Int
    package var variantsMax: Int
    package var defaultTTL: Interval

    // Disk
    /// Nil for no disk cache.
    package var cacheDirectory: String?
    package var diskBytesMax: UInt64
    /// Nil for no limit.
    package var ageLimit: Interval?
    /// Nil for never.
    package var touchInterval: Interval?
    /// Never above a quarter of ``memoryBytesMax``.
    package var diskQueueBytesMax: Int
    package var diskThreads: Int

    // Origins
    package var sites: SiteTable
    /// An origin that none of these matches is refused.
    package var allowOrigins: [OriginPattern]
    /// Nil for no limit.
    package var pixelsMax: UInt64?
    package var originRedirectsMax: Int
    package var originConnectTimeout: Interval
    package var originFirstByteTimeout: Interval
    package var originIdleTimeout: Interval
    package var originTotalTimeout: Interval
    package var originKeepalive: Interval
    /// Per origin and event loop.
    package var originIdleConnectionsMax: Int
    /// To one origin, over all loops.
    package var originConnectionsMax: Int
    /// Fetches that wait for one origin.
    package var originQueueMax: Int
    package var originQueueTimeout: Interval
    /// Nil for never.
    package var originCircuitFailures: Int?
    package var originCircuitTime: Interval
    package var originHeadBytesMax: Int
    package var originFieldsMax: Int
    package var originBodyBytesMax: UInt64
    package var originProxyNames: ProxyNameResolution
    package var dnsTTL: Interval
    package var dnsFailureTTL: Interval
    package var dnsNamesMax: Int
    package var fetchesMax: Int
    /// Nil for the default, which is none on loopback.
    package var connectionsPerClient: Int?
    /// Hundredths of what is limited that one client may have.
    package var clientPercent: Int
    /// The same for one site or origin.
    package var originPercent: Int
    /// Bytes that are fetched in a minute for one client and that nobody reads.
    package var clientUnreadBytesMax: Int
    /// Bytes a second that the body of an answer must bring; 0 for no limit.
    package var originRateMin: Int
    /// The same for the body of a request.
    package var bodyRateMin: Int
    package var waitersMax: Int
    package var waitTimeout: Interval

    // Clients
    /// Those of the tokens that the file held when it was last read; empty without one.
    package var purgeTokens: [TokenDigest] = []
    /// Nil for what the descriptor limit allows.
    package var connectionsMax: Int?
    /// Of further requests, while one is answered.
    package var pipelineBytesMax: Int
    package var requestHeadBytesMax: Int
    package var requestFieldsMax: Int
    package var requestBodyBytesMax: Int
    /// Never above ``requestHeadBytesMax``.
    package var urlBytesMax: Int
    package var rangesMax: Int
    package var idleTimeout: Interval
    package var headTimeout: Interval
    package var bodyTimeout: Interval
    package var sendTimeout: Interval
    /// Requests at one time on one connection of HTTP/2.
    package var streamsMax: Int

    // TLS
    package var tls: TLSConfiguration

    // Cluster
    package var cluster: ClusterConfiguration

    /// What the operator should be told though it stops nothing; one line each.
    package var warnings: [String]

    /// What the properties above were made of.
    private(set) var values: ConfigurationValues
    /// The same before settings were held against each other.
    private(set) var declaredValues: ConfigurationValues
}

extension Configuration {
    /// Fills in the values of fields that stand in files of their own.
    mutating func readFieldFiles() throws(ConfigurationError) {
        try declaredValues.readFieldFiles()
        (values.siteBlocks, values.images) = (declaredValues.siteBlocks, declaredValues.images)
        sites = SiteTable(values.sites.map(\.site))
    }

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
    /// Whose X-Forwarded-For, -Proto and -Host are believed.
    package var forwardedFrom: [Network] { values.networks(.forwardedFrom) }

    /// What the file says of images that are asked for by their URLs.
    package var images: ImageBlock { values.images }

    /// Images of pixels with a Content-Encoding are served, unseen.
    package var takesCodedImages: Bool { values.isOn(.codedImages) }

    /// Whose connections begin with the PROXY protocol.
    package var trustedProxies: [Network] { values.networks(.trustedProxy) }

    /// Who may use PURGE without a token.
    package var purgeNetworks: [Network] { values.networks(.purgeFrom) }

    /// Nil for no tokens.
    package var purgeTokenFile: String? { values.path(.purgeTokenFile) }

    package var logFormat: LogFormat { values.choice(.logFormat) }

    /// Media types that are served beside images, in lower case.
    package var allowTypes: [String] { values.mediaTypes(.allowType) }

    package var allowPrivateOrigins: [Network] { values.networks(.allowPrivateOrigin) }

    /// Nil for none.
    package var originProxy: (host: String, port: UInt16)? { values.hostPort(.originProxy) }
}

extension Configuration {
    /// Flags beat environment beats file beats the table's default, setting by setting.
    ///
    /// A list is taken whole from the first that gives it. An empty variable counts as not given.
    /// - Parameters:
    ///   - flags: the texts of each flag in the order given, by the setting's name.
    ///   - environment: the whole environment of the process.
    ///   - file: the YAML file, its name as the operator wrote it.
    /// - Returns: settings that fit each other.
    /// - Throws: every fault. A file that cannot be read as one mapping is the only fault that is
    ///   named, and settings are held against each other only when each of them has a value.
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

    /// Settings as they were given, held against each other.
    init(
        reconciling given: ConfigurationValues, warnings: [String]
    ) throws(ConfigurationErrors) {
        var values = given
        if let faults = ConfigurationErrors(values.reconcile()) { throw faults }
        self.init(values, declared: given, warnings: warnings)
    }
}
