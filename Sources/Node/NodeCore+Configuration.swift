import Admin
import Ground
import HTTPRules
import Logging
import NIOPosix
import Origin
import Store
import Telemetry
import Tiers
import Wire

extension NodeCore {
    /// A node as it is configured, with what its descriptors are for.
    ///
    /// Host names are looked up on the threads of `lookups`, files read on those of `diskReaders`.
    convenience init(
        _ configuration: Configuration, _ budget: DescriptorBudget, lookups: NIOThreadPool,
        diskReaders: NIOThreadPool, logger: Logger
    ) {
        var random = SystemRandomNumberGenerator()
        var diskSettings = DiskTier.Settings(configuration)
        let marks = MarkBook(
            isJournaled: diskSettings != nil,
            marksMax: diskSettings?.journal.marksMax ?? MarkBook.marksMax)
        let journalReader = JournalReader(key: marks.key)
        diskSettings?.marks = { journalReader.read($0, $1, $2) }
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
                DiskTier(settings, marks: marks, clock: clock, readers: diskReaders) { note in
                    let texts = note.texts.mapValues { Logger.MetadataValue.string($0) }
                    logger.log(
                        level: note.isWarning ? .warning : .info, "\(note.text)",
                        metadata: note.numbers.mapValues { .stringConvertible($0) }
                            .merging(texts) { $1 })
                }
            },
            clock: clock, journalReader: journalReader,
            origins: Origins(
                settings: OriginSettings(configuration, budget),
                resolver: SystemResolver(threads: lookups),
                addressGuard: AddressGuard(opening: configuration.allowPrivateOrigins),
                patterns: configuration.allowOrigins),
            accessLog: AccessLine.Format(configuration.accessLog),
            fence: FenceGate(configuration.cluster.fence, now: SystemClock.now()),
            isInCluster: configuration.cluster.secrets != nil, logger: logger)
    }
}

extension AccessLine.Format {
    init?(_ setting: Configuration.AccessLog) {
        switch setting {
        case .off: return nil
        case .combined: self = .combined
        case .json: self = .json
        }
    }
}

extension NodeSettings {
    init(_ configuration: Configuration, _ budget: DescriptorBudget) {
        headLimits = HeadLimits(
            headBytesMax: configuration.requestHeadBytesMax,
            // Percent-encoding makes three bytes of one, and the path and parameter names come on
            // top.
            targetBytesMax: min(
                configuration.requestHeadBytesMax, configuration.urlBytesMax * 3 + 1024),
            fieldsMax: configuration.requestFieldsMax)
        sites = configuration.sites
        servesImages = configuration.sites.isEmpty || !configuration.allowOrigins.isEmpty
        trustedProxies = configuration.trustedProxies
        forwardedFrom = configuration.forwardedFrom
        purgePermission = PurgePermission(
            networks: configuration.purgeNetworks, tokens: configuration.purgeTokens)
        adminAccess = AdminAccess(grants: configuration.adminGrants)
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
        fillsMax = budget.fills
        clientPercent = configuration.clientPercent
        originPercent = configuration.originPercent
        clientUnreadBytesMax = UInt64(configuration.clientUnreadBytesMax)
        bodyRateMin = configuration.bodyRateMin
        waitersMax = configuration.waitersMax
        waitTimeout = configuration.waitTimeout
        places = .init(
            places: budget.connections,
            perClient: configuration.connectionsPerClient
                ?? ConnectionPlaces.share(of: budget.connections),
            sparesLocal: configuration.connectionsPerClient == nil)
        streamsMax = configuration.streamsMax
        tls = configuration.tls.material.server
        adminTLS = configuration.tls.material.admin
        handshakeTimeout = configuration.tls.handshakeTimeout
        handshakesMax = max(1, configuration.tls.handshakesMax / budget.loops)
        objectBytesMax = UInt64(configuration.objectBytesMax)
        variantsMax = configuration.variantsMax
        touchInterval = configuration.touchInterval
        images = ImagePlans(
            configuration.images,
            ImageRules(
                types: ContentTypes(extra: configuration.allowTypes),
                pixelsMax: configuration.pixelsMax, takesCoded: configuration.takesCodedImages,
                defaultTTL: configuration.defaultTTL),
            objectBytesMax: objectBytesMax)
        sitePlans = sites.sites.enumerated().map {
            SitePlan(
                $0, $1, objectBytesMax: objectBytesMax,
                trust: configuration.tls.material.sites[$1.pattern])
        }
    }
}

extension DiskTier.Settings {
    /// Nil without a disk cache.
    fileprivate init?(_ configuration: Configuration) {
        guard let directory = configuration.cacheDirectory, configuration.diskBytesMax > 0 else {
            return nil
        }
        let ageLimit = configuration.ageLimit ?? Interval.seconds(.max)
        self.init(
            root: directory, limitBytes: configuration.diskBytesMax,
            objectBytesMax: UInt64(configuration.objectBytesMax),
            journal: JournalRoom(limitBytes: configuration.diskBytesMax), ageLimit: ageLimit,
            queueBytesMax: configuration.diskQueueBytesMax,
            // A kill must not make an image look idle that is not.
            checkpointInterval: max(
                .seconds(1), min(.seconds(600), .seconds(ageLimit.seconds / 16))))
        nodeName = configuration.cluster.nodeName
        fault = { $0.answerFault }
    }
}

extension OriginSettings {
    init(_ configuration: Configuration, _ budget: DescriptorBudget) {
        self.init()
        idleConnectionsMax = budget.idlePerLoop
        // A fetch has one connection, and any loop may have all fetches.
        connectionsMax = budget.fills + idleConnectionsMax
        gate = OriginGate.Settings(
            connectionsMax: configuration.originConnectionsMax,
            queueMax: configuration.originQueueMax,
            circuit: CircuitLimits(
                failures: configuration.originCircuitFailures,
                pause: configuration.originCircuitTime),
            clientPercent: configuration.clientPercent, uploadPercent: NodeSettings.uploadPercent)
        names = NameCache.Settings(
            lifetime: configuration.dnsTTL, failureLifetime: configuration.dnsFailureTTL,
            namesMax: configuration.dnsNamesMax)
        queueLimit = configuration.originQueueTimeout
        redirectsMax = configuration.originRedirectsMax
        bodyBytesMax = configuration.originBodyBytesMax
        headFieldsMax = configuration.originFieldsMax
        proxy = configuration.originProxy.map {
            OriginProxy(
                OriginAuthority(host: $0.host, port: $0.port),
                looksUpNames: configuration.originProxyNames == .proxy)
        }
        trust = configuration.tls.material.origins
        connectLimit = configuration.originConnectTimeout
        headLimit = configuration.originFirstByteTimeout
        idleLimit = configuration.originIdleTimeout
        bodyRateMin = configuration.originRateMin
        totalLimit = configuration.originTotalTimeout
        headBytesMax = configuration.originHeadBytesMax
        idleConnectionsPerOriginMax = configuration.originIdleConnectionsMax
        idleConnectionLimit = configuration.originKeepalive
        // What a stalled client can hold on to, and what a paused fetch can be handed late.
        receiveBufferBytes = 16 << 10
        receiveWindowBytes = 128 << 10
    }
}
