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
        advice: "One for each tls-key, in the same order. SIGHUP reads them again, but turns TLS "
            + "neither on nor off. A file of the same name with .ocsp behind it is stapled.")

    package let tlsKey = SettingKey(
        "tls-key", listOf: .path, example: "/etc/nuthatch/tls/www.key",
        meaning: "PEM file with the key of a certificate",
        advice: "One for each tls-certificate, in the same order; only the node may read it.")

    package let plainListen = SettingKey(
        "plain-listen", listOf: .address, example: "127.0.0.1:8088", needsRestart: true,
        meaning: "Where clients are served in clear text while listen speaks TLS",
        advice: "For a load balancer on the same machine; give clients TLS.")

    package let tlsMinimum = SettingKey(
        "tls-minimum", .tlsVersion, default: "1.2",
        meaning: "Oldest version of TLS that clients may speak",
        advice: "1.3 where no client is older than 2018.")

    package let tlsHandshakeTimeout = SettingKey(
        "tls-handshake-timeout", .duration(.timeLimits), default: "10s",
        meaning: "Time from a client's connection to the end of its TLS handshake",
        advice: "Raise it only for clients on very slow links.")

    package let tlsHandshakesLimit = SettingKey(
        "tls-handshakes-limit", .count(1...1_000_000), default: "2048",
        meaning: "TLS handshakes with clients at one time, over all event loops",
        advice: "Clients above it are closed; a handshake costs a thousand hits or so.")

    package let clientCA = SettingKey(
        "client-ca", .path, example: "/etc/nuthatch/tls/ca.pem",
        meaning: "PEM file with the issuers of operators' certificates; admin-listen asks them",
        advice: "The admin port then speaks TLS, with the first tls-certificate.")

    package let originCA = SettingKey(
        "origin-ca", listOf: .path, example: "/etc/nuthatch/tls/ca.pem",
        meaning: "PEM file with issuers of origins' certificates, beside the system's",
        advice: "For origins of your own; of one site alone, give its block origin-ca.")

    package let originTLSMinimum = SettingKey(
        "origin-tls-minimum", .tlsVersion, default: "1.2",
        meaning: "Oldest version of TLS that origins may speak",
        advice: "An origin that is older is refused with 502; 1.3 where all are new.")

    package let originHTTP2 = SettingKey(
        "origin-http2", .onOff, default: "on",
        meaning: "Whether HTTP/2 is offered to origins over TLS",
        advice: "Off for origins that speak it badly; then each fetch has a connection.")
}
