package import Ground

/// The settings of connections and requests of clients.
package struct ClientSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Clients"

    package let trustedProxy = SettingKey(
        "trusted-proxy", listOf: .network,
        meaning: "Networks whose connections begin with the PROXY protocol, version 1 or 2",
        advice: "Name only load balancers that send it; it determines only the client's address.")

    package let forwardedFrom = SettingKey(
        "forwarded-from", listOf: .network,
        meaning: "Networks of proxies that set X-Forwarded-For, -Proto and -Host themselves",
        advice: "They determine client, scheme and host; from others these fields are not trusted.")

    package let purgeFrom = SettingKey(
        "purge-from", listOf: .network,
        meaning: "Networks of clients that may use PURGE without a token",
        advice: "All clients behind a proxy that does not identify them have its address.")

    package let purgeTokenFile = SettingKey(
        "purge-token-file", .path, example: "/etc/nuthatch/purge-tokens",
        meaning: "File with the bearer tokens of clients that may use PURGE",
        advice: "One token per line, at least 16 characters; reread on SIGHUP.")

    package let connectionsLimit = SettingKey(
        "connections-limit", .countOrNone(0...10_000_000), default: "0",
        note: "0 (what the descriptor limit allows)", needsRestart: true,
        meaning: "Concurrent connections of clients",
        advice: "If connections are refused, raise the descriptor limit (ulimit -n) first.")

    package let connectionsPerClient = SettingKey(
        "connections-per-client", .countOrNone(0...10_000_000), default: "0",
        note: "0 (a quarter, at least 256, at most three quarters; none on loopback)",
        meaning: "Concurrent connections from one client address, or one IPv6 /64",
        advice: "A proxy without the PROXY protocol is one client: raise the limit to its needs.")

    package let pipelineLimit = SettingKey(
        "pipeline-limit", .bytes(1 << 10...16 << 20), default: "64KiB",
        meaning: "Bytes of further requests read from a connection during a response",
        advice: "Above it the node stops reading until responses are sent; nothing is lost.")

    package let requestHeadLimit = SettingKey(
        "request-head-limit", .bytes(1 << 10...1 << 20), default: "32KiB",
        meaning: "Largest head of a request",
        advice: "Larger ones get 431; large cookies are the usual cause.")

    package let requestFieldsLimit = SettingKey(
        "request-fields-limit", .count(8...10_000), default: "100",
        meaning: "Field lines of one request",
        advice: "Requests with more get 431; ordinary ones have fewer than 40.")

    package let requestBodyLimit = SettingKey(
        "request-body-limit", .bytes(0...1 << 30), default: "1MiB",
        meaning: "Largest body of a request that is not forwarded to an origin",
        advice: "Such bodies are read and discarded; larger ones get 413.")

    package let urlLimit = SettingKey(
        "url-limit", .bytes(256...64 << 10), default: "8KiB",
        note: "8KiB, or request-head-limit if that is less",
        meaning: "Longest URL of an image, in bytes; a longer one gets 414",
        advice: "At most request-head-limit; raise both if origins use longer ones.")

    package let rangesLimit = SettingKey(
        "ranges-limit", .count(1...1000), default: "16",
        meaning: "Ranges that one request may name",
        advice: "A request for more gets the whole image.")

    package let idleTimeout = SettingKey(
        "idle-timeout", .duration(.timeLimits), default: "60s",
        meaning: "Time for which a connection may stay open without a request",
        advice: "Shorten it if idle clients use up the connections.")

    package let headTimeout = SettingKey(
        "head-timeout", .duration(.timeLimits), default: "10s",
        meaning: "Time from a request's first byte to the end of its head",
        advice: "Raise it only for clients on very slow links.")

    package let bodyTimeout = SettingKey(
        "body-timeout", .duration(.timeLimits), default: "30s",
        meaning: "Time from the end of a request's head to the end of its body",
        advice: "Raise it only for clients on very slow links.")

    package let bodyMinRate = SettingKey(
        "body-min-rate", .bytes(1...1 << 30), default: "1KiB",
        meaning: "Bytes of a request body to a site that extend body-timeout by one second",
        advice: "A slower client gets 408; lower it only for clients on very slow links.")

    package let sendTimeout = SettingKey(
        "send-timeout", .duration(.timeLimits), default: "60s",
        meaning: "Longest time in which a client accepts no byte of its response",
        advice: "Shorten it if stalled clients hold memory.")

    package let streamsLimit = SettingKey(
        "streams-limit", .count(1...1000), default: "128",
        meaning: "Concurrent requests on one HTTP/2 connection",
        advice: "Above it clients wait; browsers send fewer than 128 at a time.")
}
