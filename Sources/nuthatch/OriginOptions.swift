import ArgumentParser

/// The flags under “Origins” of the table of settings.
struct OriginOptions: ParsableArguments {
    @Option(help: help("site"))
    var site: [String] = []

    @Option(help: help("allow-origin"))
    var allowOrigin: [String] = []

    @Option(help: help("allow-private-origin"))
    var allowPrivateOrigin: [String] = []

    @Option(help: help("allow-type"))
    var allowType: [String] = []

    @Option(help: help("pixel-limit"))
    var pixelLimit: String?

    @Option(help: help("coded-images"), completion: completion("coded-images"))
    var codedImages: String?

    @Option(help: help("origin-redirects"))
    var originRedirects: String?

    @Option(help: help("origin-connect-timeout"))
    var originConnectTimeout: String?

    @Option(help: help("origin-first-byte-timeout"))
    var originFirstByteTimeout: String?

    @Option(help: help("origin-idle-timeout"))
    var originIdleTimeout: String?

    @Option(help: help("origin-min-rate"))
    var originMinRate: String?

    @Option(help: help("origin-total-timeout"))
    var originTotalTimeout: String?

    @Option(help: help("origin-keepalive"))
    var originKeepalive: String?

    @Option(help: help("origin-idle-connections"))
    var originIdleConnections: String?

    @Option(help: help("origin-connections"))
    var originConnections: String?

    @Option(help: help("origin-queue-limit"))
    var originQueueLimit: String?

    @Option(help: help("origin-queue-timeout"))
    var originQueueTimeout: String?

    @Option(help: help("origin-circuit-failures"))
    var originCircuitFailures: String?

    @Option(help: help("origin-circuit-time"))
    var originCircuitTime: String?

    @Option(help: help("origin-head-limit"))
    var originHeadLimit: String?

    @Option(help: help("origin-fields-limit"))
    var originFieldsLimit: String?

    @Option(help: help("origin-body-limit"))
    var originBodyLimit: String?

    @Option(help: help("origin-proxy"))
    var originProxy: String?

    @Option(help: help("origin-proxy-names"), completion: completion("origin-proxy-names"))
    var originProxyNames: String?

    @Option(help: help("dns-ttl"))
    var dnsTTL: String?

    @Option(help: help("dns-failure-ttl"))
    var dnsFailureTTL: String?

    @Option(help: help("dns-names-limit"))
    var dnsNamesLimit: String?

    @Option(help: help("fills-limit"))
    var fillsLimit: String?

    @Option(help: help("client-share"))
    var clientShare: String?

    @Option(help: help("origin-share"))
    var originShare: String?

    @Option(help: help("client-unread-limit"))
    var clientUnreadLimit: String?

    @Option(help: help("waiters-limit"))
    var waitersLimit: String?

    @Option(help: help("wait-timeout"))
    var waitTimeout: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("site", site),
            ("allow-origin", allowOrigin),
            ("allow-private-origin", allowPrivateOrigin),
            ("allow-type", allowType),
            ("pixel-limit", pixelLimit.texts),
            ("coded-images", codedImages.texts),
            ("origin-redirects", originRedirects.texts),
            ("origin-connect-timeout", originConnectTimeout.texts),
            ("origin-first-byte-timeout", originFirstByteTimeout.texts),
            ("origin-idle-timeout", originIdleTimeout.texts),
            ("origin-min-rate", originMinRate.texts),
            ("origin-total-timeout", originTotalTimeout.texts),
            ("origin-keepalive", originKeepalive.texts),
            ("origin-idle-connections", originIdleConnections.texts),
            ("origin-connections", originConnections.texts),
            ("origin-queue-limit", originQueueLimit.texts),
            ("origin-queue-timeout", originQueueTimeout.texts),
            ("origin-circuit-failures", originCircuitFailures.texts),
            ("origin-circuit-time", originCircuitTime.texts),
            ("origin-head-limit", originHeadLimit.texts),
            ("origin-fields-limit", originFieldsLimit.texts),
            ("origin-body-limit", originBodyLimit.texts),
            ("origin-proxy", originProxy.texts),
            ("origin-proxy-names", originProxyNames.texts),
            ("dns-ttl", dnsTTL.texts),
            ("dns-failure-ttl", dnsFailureTTL.texts),
            ("dns-names-limit", dnsNamesLimit.texts),
            ("fills-limit", fillsLimit.texts),
            ("client-share", clientShare.texts),
            ("origin-share", originShare.texts),
            ("client-unread-limit", clientUnreadLimit.texts),
            ("waiters-limit", waitersLimit.texts),
            ("wait-timeout", waitTimeout.texts),
        ]
    }
}
