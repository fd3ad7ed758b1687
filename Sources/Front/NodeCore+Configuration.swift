import Admin
import Cluster
import Ground
import HTTPRules
package import Logging
package import NIOPosix
package import NodeConfiguration
import Origin
import Peering
import Platform
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
    package convenience init(
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
        let memory = MemoryStore(
            .init(
                limitBytes: configuration.memoryLimit, entriesMax: configuration.memoryEntries),
            hashing: KeyedHash(key0: random.next(), key1: random.next()), marks: marks)
        let clock = DiskClock(
            instant: SystemClock.now(), wall: SystemClock.wallMilliseconds())
        let disk = diskSettings.map { settings in
            DiskStore(settings, marks: marks, clock: clock, readers: diskReaders) { event in
                let texts = event.fields.mapValues { Logger.MetadataValue.string($0) }
                logger.log(
                    level: event.isWarning ? .warning : .info, "\(event.message)",
                    metadata: event.numericFields.mapValues { .stringConvertible($0) }
                        .merging(texts) { $1 })
            }
        }
        self.init(
            settings: NodeSettings(configuration, budget),
            tiers: CacheTiers(memory: memory, disk: disk),
            clock: clock, journalReader: journalReader,
            origins: OriginClientOptions(
                settings: OriginSettings(configuration, budget),
                resolver: SystemResolver(threads: lookups),
                addressGuard: AddressGuard(allowing: configuration.allowPrivateOrigin),
                patterns: configuration.allowOrigin),
            accessLog: AccessLine.Format(configuration.accessLog),
            fence: FenceStatus(configuration.fence, now: SystemClock.now()),
            isInCluster: configuration.clusterSecrets != nil, logger: logger)
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
            headBytesMax: configuration.requestHeadLimit,
            // Percent-encoding makes three bytes of one; the path and the parameter names are
            // extra.
            targetBytesMax: min(configuration.requestHeadLimit, configuration.urlLimit * 3 + 1024),
            fieldsMax: configuration.requestFieldsLimit)
        sites = configuration.sites
        servesImages = configuration.sites.isEmpty || !configuration.allowOrigin.isEmpty
        trustedProxies = configuration.trustedProxy
        forwardedFrom = configuration.forwardedFrom
        purgePermission = PurgePermission(
            networks: configuration.purgeFrom, tokens: configuration.purgeTokens)
        adminAccess = AdminAccessPolicy(grants: configuration.adminGrants)
        decisionToken = configuration.decisionToken
        signer =
            configuration.signingKeys.isEmpty ? nil : URLSigner(configuration.signingKeys)
        urlBytesMax = configuration.urlLimit
        requestBodyBytesMax = UInt64(configuration.requestBodyLimit)
        rangesMax = configuration.rangesLimit
        pipelineBytesMax = configuration.pipelineLimit
        idleTimeout = configuration.idleTimeout
        headTimeout = configuration.headTimeout
        bodyTimeout = configuration.bodyTimeout
        sendTimeout = configuration.sendTimeout
        fetchesMax = budget.fetchesMax
        clientPercent = configuration.clientShare
        originPercent = configuration.originShare
        clientUnreadBytesMax = UInt64(configuration.clientUnreadLimit)
        bodyRateMin = configuration.bodyMinRate
        waitersMax = configuration.waitersLimit
        waitTimeout = configuration.waitTimeout
        connectionLimits = .init(
            connectionsMax: budget.connectionsMax,
            perClientMax: configuration.connectionsPerClient
                ?? ConnectionLimiter.defaultPerClientMax(of: budget.connectionsMax),
            exemptsLocal: configuration.connectionsPerClient == nil)
        streamsMax = configuration.streamsLimit
        tls = configuration.tlsMaterial.server
        adminTLS = configuration.tlsMaterial.admin
        handshakeTimeout = configuration.tlsHandshakeTimeout
        handshakesMax = max(1, configuration.tlsHandshakesLimit / budget.loops)
        let storedBytesMax = UInt64(configuration.objectLimit)
        objectBytesMax = storedBytesMax
        variantsMax = configuration.variantsLimit
        touchInterval = configuration.touchInterval
        images = ImagePolicies(
            configuration.images,
            ImageRules(
                types: ImageMediaTypes(extra: configuration.allowType),
                pixelsMax: configuration.pixelLimit.map(UInt64.init),
                acceptsContentCoding: configuration.codedImages,
                defaultTTL: configuration.defaultTTL),
            objectBytesMax: storedBytesMax)
        sitePolicies = configuration.sites.sites.enumerated().map {
            SitePolicy(
                $0, $1, objectBytesMax: storedBytesMax,
                trust: configuration.tlsMaterial.sites[$1.pattern])
        }
    }
}

extension DiskStore.Settings {
    /// Creates the settings of the disk tier; `nil` without a disk cache.
    fileprivate init?(_ configuration: Configuration) {
        guard let directory = configuration.cacheDir, configuration.diskLimit > 0 else {
            return nil
        }
        let ageLimit = configuration.ageLimit ?? Interval.seconds(.max)
        self.init(
            root: directory, limitBytes: UInt64(configuration.diskLimit),
            objectBytesMax: UInt64(configuration.objectLimit),
            journalSpace: JournalSpace(limitBytes: UInt64(configuration.diskLimit)),
            ageLimit: ageLimit,
            queueBytesMax: configuration.diskQueueBytesMax,
            // After a kill, the loss of recent accesses must not make an entry look idle that is
            // not.
            checkpointInterval: max(
                .seconds(1), min(.seconds(600), .seconds(ageLimit.seconds / 16))))
        nodeName = configuration.nodeName
        validation = { $0.responseDefect }
    }
}

extension OriginSettings {
    /// Creates the settings of the origin clients from a configuration.
    init(_ configuration: Configuration, _ budget: DescriptorBudget) {
        self.init(
            connectLimit: configuration.originConnectTimeout,
            headLimit: configuration.originFirstByteTimeout,
            idleLimit: configuration.originIdleTimeout, bodyRateMin: configuration.originMinRate,
            totalLimit: configuration.originTotalTimeout,
            queueLimit: configuration.originQueueTimeout,
            redirectsMax: configuration.originRedirects,
            bodyBytesMax: UInt64(configuration.originBodyLimit),
            headBytesMax: configuration.originHeadLimit,
            headFieldsMax: configuration.originFieldsLimit,
            // A fetch uses one connection, and a single loop may run all fetches.
            connectionsMax: budget.fetchesMax + budget.idlePerLoop,
            idleConnectionsMax: budget.idlePerLoop,
            idleConnectionsPerOriginMax: configuration.originIdleConnections,
            idleConnectionLimit: configuration.originKeepalive,
            admission: OriginAdmission.Settings(
                connectionsMax: configuration.originConnections,
                queueMax: configuration.originQueueLimit,
                circuit: CircuitLimits(
                    failures: configuration.originCircuitFailures,
                    openInterval: configuration.originCircuitTime),
                clientPercent: configuration.clientShare,
                uploadPercent: NodeSettings.uploadPercent),
            dnsCache: DNSCache.Settings(
                lifetime: configuration.dnsTTL, failureLifetime: configuration.dnsFailureTTL,
                namesMax: configuration.dnsNamesLimit))
        proxy = configuration.originProxy.map {
            ForwardProxy(
                OriginAuthority(host: $0.host, port: $0.port),
                resolvesNames: configuration.originProxyNames == .proxy)
        }
        trustStore = configuration.tlsMaterial.origins
    }
}
