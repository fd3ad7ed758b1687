import Admin
import Ground
import HTTPRules
import Logging
import NIOPosix
import NodeConfiguration
import Origin
import Store
import Telemetry
import Tiers
import Wire

extension NodeCore {
    /// Creates a node from its configuration and from the numbers of descriptors that it may use.
    ///
    /// - Parameters:
    ///   - configuration: the configuration at the start.
    ///   - budget: the descriptors available to connections and fetches.
    ///   - lookups: the threads that resolve host names.
    ///   - diskReaders: the threads that read the cache's files.
    ///   - logger: the node's log.
    convenience init(
        _ configuration: Configuration, _ budget: DescriptorBudget, lookups: NIOThreadPool,
        diskReaders: NIOThreadPool, logger: Logger
    ) {
        var random = SystemRandomNumberGenerator()
        var diskSettings = DiskStore.Settings(configuration)
        let marks = InvalidationIndex(
            isJournaled: diskSettings != nil,
            marksMax: diskSettings?.journalSpace.marksMax ?? InvalidationIndex.marksMax)
        let journalReader = JournalReader(key: marks.key)
        diskSettings?.markRecovery = { journalReader.read($0, $1, $2) }
        let clock = DiskClock(
            instant: SystemClock.now(), wall: SystemClock.wallMilliseconds())
        self.init(
            settings: NodeSettings(configuration, budget),
            store: MemoryStore(
                .init(
                    limitBytes: configuration.memoryBytesMax,
                    entriesMax: configuration.memoryEntriesMax ?? 0),
                hashing: KeyedHash(key0: random.next(), key1: random.next()), marks: marks),
            disk: diskSettings.map { settings in
                DiskStore(settings, marks: marks, clock: clock, readers: diskReaders) { note in
                    let texts = note.fields.mapValues { Logger.MetadataValue.string($0) }
                    logger.log(
                        level: note.isWarning ? .warning : .info, "\(note.message)",
                        metadata: note.numericFields.mapValues { .stringConvertible($0) }
                            .merging(texts) { $1 })
                }
            },
            clock: clock, journalReader: journalReader,
            origins: OriginClientOptions(
                settings: OriginSettings(configuration, budget),
                resolver: SystemResolver(threads: lookups),
                addressGuard: AddressGuard(allowing: configuration.allowPrivateOrigins),
                patterns: configuration.allowOrigins),
            accessLog: AccessLine.Format(configuration.accessLog),
            fence: FenceStatus(configuration.cluster.fence, now: SystemClock.now()),
            isInCluster: configuration.cluster.secrets != nil, logger: logger)
    }
}

extension AccessLine.Format {
    /// Creates the format of a setting; `nil` for `off`.
    init?(_ setting: Configuration.AccessLogFormat) {
        switch setting {
        case .off: return nil
        case .combined: self = .combined
        case .json: self = .json
        }
    }
}

extension NodeSettings {
    /// Creates the settings of the event loops from a configuration.
    init(_ configuration: Configuration, _ budget: DescriptorBudget) {
        headLimits = HeadLimits(
            headBytesMax: configuration.requestHeadBytesMax,
            // Percent-encoding makes three bytes of one; the path and the parameter names are
            // extra.
            targetBytesMax: min(
                configuration.requestHeadBytesMax, configuration.urlBytesMax * 3 + 1024),
            fieldsMax: configuration.requestFieldsMax)
        sites = configuration.sites
        servesImages = configuration.sites.isEmpty || !configuration.allowOrigins.isEmpty
        trustedProxies = configuration.trustedProxies
        forwardedFrom = configuration.forwardedFrom
        purgePermission = PurgePermission(
            networks: configuration.purgeNetworks, tokens: configuration.purgeTokens)
        adminAccess = AdminAccessPolicy(grants: configuration.adminGrants)
        decisionToken = configuration.decisionToken
        if !configuration.signingKeys.isEmpty { signer = URLSigner(configuration.signingKeys) }
        urlBytesMax = configuration.urlBytesMax
        requestBodyBytesMax = UInt64(configuration.requestBodyBytesMax)
        rangesMax = configuration.rangesMax
        pipelineBytesMax = configuration.pipelineBytesMax
        idleTimeout = configuration.idleTimeout
        headTimeout = configuration.headTimeout
        bodyTimeout = configuration.bodyTimeout
        sendTimeout = configuration.sendTimeout
        fetchesMax = budget.fetchesMax
        clientPercent = configuration.clientPercent
        originPercent = configuration.originPercent
        clientUnreadBytesMax = UInt64(configuration.clientUnreadBytesMax)
        bodyRateMin = configuration.bodyRateMin
        waitersMax = configuration.waitersMax
        waitTimeout = configuration.waitTimeout
        connectionLimits = .init(
            connectionsMax: budget.connectionsMax,
            perClientMax: configuration.connectionsPerClient
                ?? ConnectionLimiter.defaultPerClientMax(of: budget.connectionsMax),
            exemptsLocal: configuration.connectionsPerClient == nil)
        streamsMax = configuration.streamsMax
        tls = configuration.tls.material.server
        adminTLS = configuration.tls.material.admin
        handshakeTimeout = configuration.tls.handshakeTimeout
        handshakesMax = max(1, configuration.tls.handshakesMax / budget.loops)
        objectBytesMax = UInt64(configuration.objectBytesMax)
        variantsMax = configuration.variantsMax
        touchInterval = configuration.touchInterval
        images = ImagePolicies(
            configuration.images,
            ImageRules(
                types: ImageMediaTypes(extra: configuration.allowTypes),
                pixelsMax: configuration.pixelsMax,
                acceptsContentCoding: configuration.takesCodedImages,
                defaultTTL: configuration.defaultTTL),
            objectBytesMax: objectBytesMax)
        sitePolicies = sites.sites.enumerated().map {
            SitePolicy(
                $0, $1, objectBytesMax: objectBytesMax,
                trust: configuration.tls.material.sites[$1.pattern])
        }
    }
}

extension DiskStore.Settings {
    /// Creates the settings of the disk tier; `nil` without a disk cache.
    fileprivate init?(_ configuration: Configuration) {
        guard let directory = configuration.cacheDirectory, configuration.diskBytesMax > 0 else {
            return nil
        }
        let ageLimit = configuration.ageLimit ?? Interval.seconds(.max)
        self.init(
            root: directory, limitBytes: configuration.diskBytesMax,
            objectBytesMax: UInt64(configuration.objectBytesMax),
            journalSpace: JournalSpace(limitBytes: configuration.diskBytesMax), ageLimit: ageLimit,
            queueBytesMax: configuration.diskQueueBytesMax,
            // After a kill, the loss of recent accesses must not make an entry look idle that is
            // not.
            checkpointInterval: max(
                .seconds(1), min(.seconds(600), .seconds(ageLimit.seconds / 16))))
        nodeName = configuration.cluster.nodeName
        validation = { $0.responseDefect }
    }
}

extension OriginSettings {
    /// Creates the settings of the origin clients from a configuration.
    init(_ configuration: Configuration, _ budget: DescriptorBudget) {
        self.init()
        idleConnectionsMax = budget.idlePerLoop
        // A fetch uses one connection, and a single loop may run all fetches.
        connectionsMax = budget.fetchesMax + idleConnectionsMax
        admission = OriginAdmission.Settings(
            connectionsMax: configuration.originConnectionsMax,
            queueMax: configuration.originQueueMax,
            circuit: CircuitLimits(
                failures: configuration.originCircuitFailures,
                openInterval: configuration.originCircuitTime),
            clientPercent: configuration.clientPercent, uploadPercent: NodeSettings.uploadPercent)
        dnsCache = DNSCache.Settings(
            lifetime: configuration.dnsTTL, failureLifetime: configuration.dnsFailureTTL,
            namesMax: configuration.dnsNamesMax)
        queueLimit = configuration.originQueueTimeout
        redirectsMax = configuration.originRedirectsMax
        bodyBytesMax = configuration.originBodyBytesMax
        headFieldsMax = configuration.originFieldsMax
        proxy = configuration.originProxy.map {
            ForwardProxy(
                OriginAuthority(host: $0.host, port: $0.port),
                resolvesNames: configuration.originProxyNames == .proxy)
        }
        trustStore = configuration.tls.material.origins
        connectLimit = configuration.originConnectTimeout
        headLimit = configuration.originFirstByteTimeout
        idleLimit = configuration.originIdleTimeout
        bodyRateMin = configuration.originRateMin
        totalLimit = configuration.originTotalTimeout
        headBytesMax = configuration.originHeadBytesMax
        idleConnectionsPerOriginMax = configuration.originIdleConnectionsMax
        idleConnectionLimit = configuration.originKeepalive
        // The bytes that a stalled client can pin, and that can still arrive for a paused fetch.
        receiveBufferBytes = 16 << 10
        receiveWindowBytes = 128 << 10
    }
}
