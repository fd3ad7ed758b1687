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
    /// A node as it is configured, with this many `loops`, in a process that may open so many
    /// `descriptors`.
    ///
    /// Host names are looked up on the threads of `lookups`, files read on those of `diskReaders`.
    convenience init(
        _ configuration: Configuration, loops: Int, descriptors: Int, lookups: NIOThreadPool,
        diskReaders: NIOThreadPool, logger: Logger
    ) {
        var random = SystemRandomNumberGenerator()
        let clock = DiskClock(
            instant: SystemClock.now(), wall: SystemClock.wallMilliseconds())
        self.init(
            settings: NodeSettings(configuration, descriptors: descriptors, loops: loops),
            store: MemoryStore(
                .init(
                    limitBytes: configuration.memoryBytesMax,
                    entriesMax: configuration.memoryEntriesMax ?? 0),
                hashing: KeyedHash(key0: random.next(), key1: random.next())),
            disk: DiskTier.Settings(configuration).map { settings in
                DiskTier(settings, clock: clock, readers: diskReaders) { note in
                    logger.log(level: note.isWarning ? .warning : .info, "\(note.text)")
                }
            },
            clock: clock,
            origins: Origins(
                settings: OriginSettings(configuration, descriptors: descriptors, loops: loops),
                resolver: SystemResolver(threads: lookups),
                addressGuard: AddressGuard(opening: configuration.allowPrivateOrigins),
                patterns: configuration.allowOrigins),
            accessLog: AccessLog.Format(configuration.accessLog), logger: logger)
    }
}

extension AccessLog.Format {
    fileprivate init?(_ setting: Configuration.AccessLog) {
        switch setting {
        case .off: return nil
        case .combined: self = .combined
        case .json: self = .json
        }
    }
}

extension NodeSettings {
    init(_ configuration: Configuration, descriptors: Int, loops: Int) {
        headLimits = HeadLimits(
            headBytesMax: configuration.requestHeadBytesMax,
            // Percent-encoding makes three bytes of one, and the path and parameter names come on
            // top.
            targetBytesMax: min(
                configuration.requestHeadBytesMax, configuration.urlBytesMax * 3 + 1024),
            fieldsMax: configuration.requestFieldsMax)
        urlBytesMax = configuration.urlBytesMax
        requestBodyBytesMax = UInt64(configuration.requestBodyBytesMax)
        rangesMax = configuration.rangesMax
        pipelineBytesMax = configuration.pipelineBytesMax
        idleTimeout = configuration.idleTimeout
        headTimeout = configuration.headTimeout
        bodyTimeout = configuration.bodyTimeout
        sendTimeout = configuration.sendTimeout
        fillsMax = configuration.fillsMax
        waitersMax = configuration.waitersMax
        waitTimeout = configuration.waitTimeout
        connectionsMax =
            configuration.connectionsMax
            ?? DescriptorLimit.connections(
                of: descriptors - configuration.segmentsMax, fills: fillsMax,
                idle: loops
                    * DescriptorLimit.idleConnections(
                        of: descriptors, loops: loops,
                        perOrigin: configuration.originIdleConnectionsMax))
        objectBytesMax = UInt64(configuration.objectBytesMax)
        defaultTTL = configuration.defaultTTL
        touchInterval = configuration.touchInterval
        types = ContentTypes(extra: configuration.allowTypes)
        pixelsMax = configuration.pixelsMax
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
            root: directory, limitBytes: configuration.diskBytesMax, ageLimit: ageLimit,
            queueBytesMax: configuration.diskQueueBytesMax,
            // A kill must not make an image look idle that is not.
            checkpointInterval: max(
                .seconds(1), min(.seconds(600), .seconds(ageLimit.seconds / 16))))
    }
}

extension Configuration {
    /// Files that the disk cache may have open.
    fileprivate var segmentsMax: Int {
        guard cacheDirectory != nil, diskBytesMax > 0,
            let plan = try? DiskPlan(limitBytes: diskBytesMax, formerSegmentBytes: nil)
        else { return 0 }
        return plan.segments
    }
}

extension OriginSettings {
    fileprivate init(_ configuration: Configuration, descriptors: Int, loops: Int) {
        self.init()
        idleConnectionsMax = DescriptorLimit.idleConnections(
            of: descriptors, loops: loops, perOrigin: configuration.originIdleConnectionsMax)
        // A fetch has one connection, and any loop may have all fetches.
        connectionsMax = configuration.fillsMax + idleConnectionsMax
        gate = OriginGate.Settings(
            connectionsMax: configuration.originConnectionsMax,
            queueMax: configuration.originQueueMax,
            circuit: CircuitLimits(
                failures: configuration.originCircuitFailures,
                pause: configuration.originCircuitTime))
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
        connectLimit = configuration.originConnectTimeout
        headLimit = configuration.originFirstByteTimeout
        idleLimit = configuration.originIdleTimeout
        totalLimit = configuration.originTotalTimeout
        headBytesMax = configuration.originHeadBytesMax
        idleConnectionsPerOriginMax = configuration.originIdleConnectionsMax
        idleConnectionLimit = configuration.originKeepalive
        // What a stalled client can hold on to, and what a paused fetch can be handed late.
        receiveBufferBytes = 16 << 10
        receiveWindowBytes = 128 << 10
    }
}
