import ArgumentParser

/// The flags under “Clients” of the table of settings.
struct ClientOptions: ParsableArguments {
    @Option(help: help("trusted-proxy"))
    var trustedProxy: [String] = []

    @Option(help: help("forwarded-from"))
    var forwardedFrom: [String] = []

    @Option(help: help("purge-from"))
    var purgeFrom: [String] = []

    @Option(help: help("purge-token-file"), completion: completion("purge-token-file"))
    var purgeTokenFile: String?

    @Option(help: help("connections-limit"))
    var connectionsLimit: String?

    @Option(help: help("connections-per-client"))
    var connectionsPerClient: String?

    @Option(help: help("pipeline-limit"))
    var pipelineLimit: String?

    @Option(help: help("request-head-limit"))
    var requestHeadLimit: String?

    @Option(help: help("request-fields-limit"))
    var requestFieldsLimit: String?

    @Option(help: help("request-body-limit"))
    var requestBodyLimit: String?

    @Option(help: help("url-limit"))
    var urlLimit: String?

    @Option(help: help("ranges-limit"))
    var rangesLimit: String?

    @Option(help: help("idle-timeout"))
    var idleTimeout: String?

    @Option(help: help("head-timeout"))
    var headTimeout: String?

    @Option(help: help("body-timeout"))
    var bodyTimeout: String?

    @Option(help: help("body-min-rate"))
    var bodyMinRate: String?

    @Option(help: help("send-timeout"))
    var sendTimeout: String?

    @Option(help: help("streams-limit"))
    var streamsLimit: String?

    /// The texts given for each setting; none for those not given.
    var flags: [(String, [String])] {
        [
            ("trusted-proxy", trustedProxy),
            ("forwarded-from", forwardedFrom),
            ("purge-from", purgeFrom),
            ("purge-token-file", purgeTokenFile.texts),
            ("connections-limit", connectionsLimit.texts),
            ("connections-per-client", connectionsPerClient.texts),
            ("pipeline-limit", pipelineLimit.texts),
            ("request-head-limit", requestHeadLimit.texts),
            ("request-fields-limit", requestFieldsLimit.texts),
            ("request-body-limit", requestBodyLimit.texts),
            ("url-limit", urlLimit.texts),
            ("ranges-limit", rangesLimit.texts),
            ("idle-timeout", idleTimeout.texts),
            ("head-timeout", headTimeout.texts),
            ("body-timeout", bodyTimeout.texts),
            ("body-min-rate", bodyMinRate.texts),
            ("send-timeout", sendTimeout.texts),
            ("streams-limit", streamsLimit.texts),
        ]
    }
}
