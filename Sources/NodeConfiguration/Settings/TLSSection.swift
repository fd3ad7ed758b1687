package import Ground
package import Telemetry
package import Wire

/// The settings of encryption to clients, operators and origins.
package struct TLSSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "TLS"

    package let tlsCertificate = SettingKey(
        "tls-certificate", listOf: .path, example: "/etc/nuthatch/tls/www.pem",
        meaning: "PEM file with a certificate and those of its issuers; turns TLS on",
        advice: "One for each tls-key, in the same order. SIGHUP rereads them, but does not turn "
            + "TLS on or off. A file of the same name with .ocsp appended is stapled.")

    package let tlsKey = SettingKey(
        "tls-key", listOf: .path, example: "/etc/nuthatch/tls/www.key",
        meaning: "PEM file with a certificate's private key",
        advice: "One for each tls-certificate, in the same order; only the node may read it.")

    package let plainListen = SettingKey(
        "plain-listen", listOf: .address, example: "127.0.0.1:8088", needsRestart: true,
        meaning: "Address for cleartext HTTP while listen uses TLS",
        advice: "For a load balancer on the same machine; give clients TLS.")

    package let tlsMinimum = SettingKey(
        "tls-minimum", .tlsVersion, default: "1.2",
        meaning: "Lowest TLS version accepted from clients",
        advice: "Use 1.3 if no client is older than 2018.")

    package let tlsHandshakeTimeout = SettingKey(
        "tls-handshake-timeout", .duration(.timeLimits), default: "10s",
        meaning: "Time from a client's connection to the end of its TLS handshake",
        advice: "Raise it only for clients on very slow links.")

    package let tlsHandshakesLimit = SettingKey(
        "tls-handshakes-limit", .count(1...1_000_000), default: "2048",
        meaning: "Concurrent TLS handshakes with clients, over all event loops",
        advice: "Connections above it are closed; a handshake costs about as much as 1000 hits.")

    package let clientCA = SettingKey(
        "client-ca", .path, example: "/etc/nuthatch/tls/ca.pem",
        meaning:
            "PEM file with the issuers of operators' certificates, which admin-listen requires",
        advice: "The admin port then speaks TLS, with the first tls-certificate.")

    package let originCA = SettingKey(
        "origin-ca", listOf: .path, example: "/etc/nuthatch/tls/ca.pem",
        meaning: "PEM file with issuers of origins' certificates, in addition to the system's",
        advice: "For origins of your own; for a single site, set origin-ca in its block.")

    package let originTLSMinimum = SettingKey(
        "origin-tls-minimum", .tlsVersion, default: "1.2",
        meaning: "Lowest TLS version accepted from origins",
        advice: "An origin with only older versions gets 502; use 1.3 if all support it.")

    package let originHTTP2 = SettingKey(
        "origin-http2", .onOff, default: "on",
        meaning: "Whether HTTP/2 is offered to origins over TLS",
        advice: "Use off for origins that implement it badly; each fetch then has a connection.")
}
