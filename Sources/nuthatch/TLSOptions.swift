import ArgumentParser

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

    /// The texts given for each setting; none for those not given.
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
