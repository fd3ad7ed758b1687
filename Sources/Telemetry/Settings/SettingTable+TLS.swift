import Ground

extension Setting {
    /// The settings of encryption to clients and origins.
    static let tlsRows: [Setting] = [
        Setting(
            .tlsCertificate, in: .tls, .path, isList: true,
            meaning: "PEM file with a certificate and those of its issuers; turns TLS on",
            advice:
                "One for each tls-key, in the same order. SIGHUP reads them again, but turns TLS "
                + "neither on nor off. A file of the same name with .ocsp behind it is stapled."),
        Setting(
            .tlsKey, in: .tls, .path, isList: true,
            meaning: "PEM file with the key of a certificate",
            advice: "One for each tls-certificate, in the same order; only the node may read it."),
        Setting(
            .plainListen, in: .tls, .address, isList: true, needsRestart: true,
            meaning: "Where clients are served in clear text while listen speaks TLS",
            advice: "For a load balancer on the same machine; give clients TLS."),
        Setting(
            .tlsMinimum, in: .tls, .choice(["1.2", "1.3"]), default: "1.2",
            meaning: "Oldest version of TLS that clients may speak",
            advice: "1.3 where no client is older than 2018."),
        Setting(
            .tlsHandshakeTimeout, in: .tls, timeLimits, default: "10s",
            meaning: "Time from a client's connection to the end of its TLS handshake",
            advice: "Raise it only for clients on very slow links."),
        Setting(
            .tlsHandshakesLimit, in: .tls, .count(1...1_000_000), default: "2048",
            meaning: "TLS handshakes with clients at one time, over all event loops",
            advice: "Clients above it are closed; a handshake costs a thousand hits or so."),
        Setting(
            .clientCA, in: .tls, .path,
            meaning: "PEM file with the issuers of operators' certificates; admin-listen asks them",
            advice: "The admin port then speaks TLS, with the first tls-certificate."),
        Setting(
            .originCA, in: .tls, .path, isList: true,
            meaning: "PEM file with issuers of origins' certificates, beside the system's",
            advice: "For origins of your own; of one site alone, give its block origin-ca."),
        Setting(
            .originTLSMinimum, in: .tls, .choice(["1.2", "1.3"]), default: "1.2",
            meaning: "Oldest version of TLS that origins may speak",
            advice: "An origin that is older is refused with 502; 1.3 where all are new."),
        Setting(
            .originHTTP2, in: .tls, .choice(["on", "off"]), default: "on",
            meaning: "Whether HTTP/2 is offered to origins over TLS",
            advice: "Off for origins that speak it badly; then each fetch has a connection."),
    ]
}
