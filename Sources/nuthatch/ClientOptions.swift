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

    /// The texts given for each setting; empty for a setting that is not given.
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

/// The flags under “TLS” of the table of settings.
struct TLSOptions: ParsableArguments {
    @Option(help: help("tls-certificate"), completion: completion("tls-certificate"))
    var tlsCertificate: [String] = []

    @Option(help: help("tls-key"), completion: completion("tls-key"))
    var tlsKey: [String] = []

    @Option(help: help("plain-listen"))
    var plainListen: [String] = []

    @Option(help: help("tls-minimum"), completion: completion("tls-minimum"))
    var tlsMinimum: String?

    @Option(help: help("tls-handshake-timeout"))
    var tlsHandshakeTimeout: String?

    @Option(help: help("tls-handshakes-limit"))
    var tlsHandshakesLimit: String?

    @Option(
        name: .customLong("client-ca"), help: help("client-ca"), completion: completion("client-ca")
    )
    var clientCA: String?

    @Option(
        name: .customLong("origin-ca"), help: help("origin-ca"), completion: completion("origin-ca")
    )
    var originCA: [String] = []

    @Option(
        name: .customLong("origin-tls-minimum"), help: help("origin-tls-minimum"),
        completion: completion("origin-tls-minimum"))
    var originTLSMinimum: String?

    @Option(
        name: .customLong("origin-http2"), help: help("origin-http2"),
        completion: completion("origin-http2"))
    var originHTTP2: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("tls-certificate", tlsCertificate),
            ("tls-key", tlsKey),
            ("plain-listen", plainListen),
            ("tls-minimum", tlsMinimum.texts),
            ("tls-handshake-timeout", tlsHandshakeTimeout.texts),
            ("tls-handshakes-limit", tlsHandshakesLimit.texts),
            ("client-ca", clientCA.texts),
            ("origin-ca", originCA),
            ("origin-tls-minimum", originTLSMinimum.texts),
            ("origin-http2", originHTTP2.texts),
        ]
    }
}
