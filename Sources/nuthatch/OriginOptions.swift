import ArgumentParser

/// The flags under “Origins” of the table of settings.
struct OriginOptions: ParsableArguments {
    @Option(help: help("allow-origin"))
    var allowOrigin: [String] = []

    @Option(help: help("allow-private-origin"))
    var allowPrivateOrigin: [String] = []

    @Option(help: help("origin-connect-timeout"))
    var originConnectTimeout: String?

    @Option(help: help("origin-first-byte-timeout"))
    var originFirstByteTimeout: String?

    @Option(help: help("origin-idle-timeout"))
    var originIdleTimeout: String?

    @Option(help: help("origin-total-timeout"))
    var originTotalTimeout: String?

    @Option(help: help("origin-keepalive"))
    var originKeepalive: String?

    @Option(help: help("origin-idle-connections"))
    var originIdleConnections: String?

    @Option(help: help("origin-head-limit"))
    var originHeadLimit: String?

    @Option(help: help("fills-limit"))
    var fillsLimit: String?

    @Option(help: help("waiters-limit"))
    var waitersLimit: String?

    /// The texts given for each setting; none for those not given.
    var flags: [(String, [String])] {
        [
            ("allow-origin", allowOrigin),
            ("allow-private-origin", allowPrivateOrigin),
            ("origin-connect-timeout", originConnectTimeout.texts),
            ("origin-first-byte-timeout", originFirstByteTimeout.texts),
            ("origin-idle-timeout", originIdleTimeout.texts),
            ("origin-total-timeout", originTotalTimeout.texts),
            ("origin-keepalive", originKeepalive.texts),
            ("origin-idle-connections", originIdleConnections.texts),
            ("origin-head-limit", originHeadLimit.texts),
            ("fills-limit", fillsLimit.texts),
            ("waiters-limit", waitersLimit.texts),
        ]
    }
}
