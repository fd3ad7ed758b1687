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
        advice: "Flags and environment variables override the file; a file cannot name another.")

    package let listen = SettingKey(
        "listen", listOf: .address, default: "127.0.0.1:8080", needsRestart: true,
        meaning: "Address for clients; port 0 lets the kernel choose",
        advice: "An address beyond loopback requires allow-origin or site.")

    package let adminListen = SettingKey(
        "admin-listen", .addressOrOff, default: "127.0.0.1:8081", needsRestart: true,
        meaning: "Address of the admin port: health, metrics, purges and all else for operators",
        advice: "An address beyond loopback requires admin-token-file or client-ca; off closes it.")

    package let adminTokenFile = SettingKey(
        "admin-token-file", .path, example: "/etc/nuthatch/admin-tokens",
        meaning: "File with operators' tokens, one per line: read, purge or admin, then the token",
        advice: "When it is set, every caller needs a token, also on loopback; reread on SIGHUP.")

    package let loops = SettingKey(
        "loops", .countOrNone(0...Configuration.loopsMax), default: "0", note: "0 (one per core)",
        needsRestart: true,
        meaning: "Event loops, each on its own thread",
        advice: "More loops than cores do not help; fewer leave cores to other programs.")

    package let accessLog = SettingKey<Configuration.AccessLogFormat>(
        "access-log", .choice, default: "off",
        meaning: "One line per request on standard output, with its id",
        advice: "Lines that the reader does not consume in time are dropped and counted.")

    package let logLevel = SettingKey<Logger.Level>(
        "log-level", .choice, default: "info",
        meaning: "Lowest severity of messages logged to standard error",
        advice: "debug and trace cost time on every request.")

    package let logFormat = SettingKey<Configuration.LogFormat>(
        "log-format", .choice, default: "logfmt",
        meaning: "Format of log messages on standard error, one per line",
        advice: "text is for people, logfmt for people and collectors, json for collectors.")

    package let decisionTokenFile = SettingKey(
        "decision-token-file", .path, example: "/etc/nuthatch/decision-token",
        meaning: "File with the token of requests whose response explains the caching decision",
        advice: "Without it no response has Nuthatch-Decision; 16 to 256 bytes, reread on SIGHUP.")

    package let signingKeyFile = SettingKey(
        "signing-key-file", .path, example: "/etc/nuthatch/signing-keys",
        meaning: "File with the keys of signed URLs; when set, images are served only for these",
        advice: "One key per line: the first signs, all are accepted; reread on SIGHUP.")

    package let drainTimeout = SettingKey(
        "drain-timeout", .duration(.zero ... .seconds(3600)), default: "30s",
        meaning: "Time allowed for running requests after SIGTERM",
        advice: "Keep it below the time after which the supervisor kills the process.")
}
