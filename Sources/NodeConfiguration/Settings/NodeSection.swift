package import Ground
package import Logging
package import Telemetry

/// The settings of the node itself: its ports, its logs and its stop.
package struct NodeSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Node"

    package let config = SettingKey(
        "config", .path, example: "nuthatch.yaml", needsRestart: true,
        meaning: "YAML file whose keys are the names of these settings",
        advice: "Flags and environment variables beat the file; a file cannot name another.")

    package let listen = SettingKey(
        "listen", listOf: .address, default: "127.0.0.1:8080", needsRestart: true,
        meaning: "Where clients are served; port 0 lets the kernel choose",
        advice: "Beyond loopback the node must be told what it may fetch: allow-origin or site.")

    package let adminListen = SettingKey(
        "admin-listen", .addressOrOff, default: "127.0.0.1:8081", needsRestart: true,
        meaning: "Where operators are served: health, metrics, purges and all else",
        advice: "Beyond loopback only with admin-token-file or client-ca; off closes it.")

    package let adminTokenFile = SettingKey(
        "admin-token-file", .path, example: "/etc/nuthatch/admin-tokens",
        meaning: "File with the tokens of operators, a line each: read, purge or admin, and it",
        advice: "With it everybody needs one, on loopback too; read again at SIGHUP.")

    package let loops = SettingKey(
        "loops", .countOrNone(0...Configuration.loopsMax), default: "0", note: "0 (one per core)",
        needsRestart: true,
        meaning: "Event loops, each on a thread of its own",
        advice: "More loops than cores do not help; fewer leave cores to other programs.")

    package let accessLog = SettingKey<Configuration.AccessLogFormat>(
        "access-log", .choice, default: "off",
        meaning: "One line per request on standard output, with its id",
        advice: "Lines that the reader does not take in time are dropped and counted.")

    package let logLevel = SettingKey<Logger.Level>(
        "log-level", .choice, default: "info",
        meaning: "The least severe message that is logged on standard error",
        advice: "debug and trace cost time on every request.")

    package let logFormat = SettingKey<Configuration.LogFormat>(
        "log-format", .choice, default: "logfmt",
        meaning: "How a message of the log on standard error is written, one a line",
        advice: "text for people, logfmt for people and collectors, json for collectors.")

    package let decisionTokenFile = SettingKey(
        "decision-token-file", .path, example: "/etc/nuthatch/decision-token",
        meaning: "File with the token that makes an answer tell how it came about",
        advice: "Without it no request can ask; at least 16 bytes, read again at SIGHUP.")

    package let signingKeyFile = SettingKey(
        "signing-key-file", .path, example: "/etc/nuthatch/signing-keys",
        meaning: "File with the keys of signed URLs; with it images are served to those alone",
        advice: "A key a line, the first signs and all are accepted; read again at SIGHUP.")

    package let drainTimeout = SettingKey(
        "drain-timeout", .duration(.zero ... .seconds(3600)), default: "30s",
        meaning: "Time that running requests are given after SIGTERM",
        advice: "Keep it below the time after which the supervisor kills the process.")
}
