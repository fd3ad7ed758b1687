/// A setting of the node; the raw value is the key in the file, and the flag without dashes.
package enum SettingName: String, CaseIterable, Sendable {
    case config
    case listen
    case adminListen = "admin-listen"
    case adminTokenFile = "admin-token-file"
    case loops
    case accessLog = "access-log"
    case logLevel = "log-level"
    case logFormat = "log-format"
    case decisionTokenFile = "decision-token-file"
    case signingKeyFile = "signing-key-file"
    case drainTimeout = "drain-timeout"

    case memoryLimit = "memory-limit"
    case memoryEntries = "memory-entries"
    case memoryPressure = "memory-pressure"
    case objectLimit = "object-limit"
    case variantsLimit = "variants-limit"
    case defaultTTL = "default-ttl"

    case cacheDir = "cache-dir"
    case diskLimit = "disk-limit"
    case ageLimit = "age-limit"
    case touchInterval = "touch-interval"
    case diskQueueLimit = "disk-queue-limit"
    case diskThreads = "disk-threads"

    case site
    case allowOrigin = "allow-origin"
    case allowPrivateOrigin = "allow-private-origin"
    case allowType = "allow-type"
    case pixelLimit = "pixel-limit"
    case codedImages = "coded-images"
    case originRedirects = "origin-redirects"
    case originConnectTimeout = "origin-connect-timeout"
    case originFirstByteTimeout = "origin-first-byte-timeout"
    case originIdleTimeout = "origin-idle-timeout"
    case originMinRate = "origin-min-rate"
    case originTotalTimeout = "origin-total-timeout"
    case originKeepalive = "origin-keepalive"
    case originIdleConnections = "origin-idle-connections"
    case originConnections = "origin-connections"
    case originQueueLimit = "origin-queue-limit"
    case originQueueTimeout = "origin-queue-timeout"
    case originCircuitFailures = "origin-circuit-failures"
    case originCircuitTime = "origin-circuit-time"
    case originHeadLimit = "origin-head-limit"
    case originFieldsLimit = "origin-fields-limit"
    case originBodyLimit = "origin-body-limit"
    case originProxy = "origin-proxy"
    case originProxyNames = "origin-proxy-names"
    case dnsTTL = "dns-ttl"
    case dnsFailureTTL = "dns-failure-ttl"
    case dnsNamesLimit = "dns-names-limit"
    case fillsLimit = "fills-limit"
    case clientShare = "client-share"
    case originShare = "origin-share"
    case clientUnreadLimit = "client-unread-limit"
    case waitersLimit = "waiters-limit"
    case waitTimeout = "wait-timeout"

    case trustedProxy = "trusted-proxy"
    case forwardedFrom = "forwarded-from"
    case purgeFrom = "purge-from"
    case purgeTokenFile = "purge-token-file"
    case connectionsLimit = "connections-limit"
    case connectionsPerClient = "connections-per-client"
    case pipelineLimit = "pipeline-limit"
    case requestHeadLimit = "request-head-limit"
    case requestFieldsLimit = "request-fields-limit"
    case requestBodyLimit = "request-body-limit"
    case urlLimit = "url-limit"
    case rangesLimit = "ranges-limit"
    case idleTimeout = "idle-timeout"
    case headTimeout = "head-timeout"
    case bodyTimeout = "body-timeout"
    case bodyMinRate = "body-min-rate"
    case sendTimeout = "send-timeout"
    case streamsLimit = "streams-limit"

    case tlsCertificate = "tls-certificate"
    case tlsKey = "tls-key"
    case plainListen = "plain-listen"
    case tlsMinimum = "tls-minimum"
    case tlsHandshakeTimeout = "tls-handshake-timeout"
    case tlsHandshakesLimit = "tls-handshakes-limit"
    case clientCA = "client-ca"
    case originCA = "origin-ca"
    case originTLSMinimum = "origin-tls-minimum"
    case originHTTP2 = "origin-http2"

    case clusterSecretFile = "cluster-secret-file"
    case join
    case nodeName = "node-name"
    case expect
    case joinTimeout = "join-timeout"
    case peerListen = "peer-listen"
    case peerAdvertise = "peer-advertise"
    case replicas
    case ringWeight = "ring-weight"
    case ringWeightLimit = "ring-weight-limit"
    case handOverTimeout = "hand-over-timeout"
    case fence
    case forgetAfter = "forget-after"

    /// The command-line flag, such as `--memory-limit`.
    package var flag: String { "--" + rawValue }

    /// The environment variable, such as `NUTHATCH_MEMORY_LIMIT`.
    package var environmentName: String {
        Self.environmentPrefix + String(rawValue.uppercased().map { $0 == "-" ? "_" : $0 })
    }

    /// The prefix of all environment variables of a node.
    package static let environmentPrefix = "NUTHATCH_"
}
