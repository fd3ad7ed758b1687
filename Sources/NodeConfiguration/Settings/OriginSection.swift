package import Ground

/// The settings of origins, fetches and the sites that are served.
package struct OriginSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Origins"

    package let site = SettingKey(
        "site", listOf: .site,
        meaning: "Host that is served, and the base URL of its origin",
        advice: "Settings of one site go in the file, under sites; * stands for all other hosts.")

    package let allowOrigin = SettingKey(
        "allow-origin", listOf: .originPattern,
        note: "none with sites; otherwise * on loopback; elsewhere it or site is required",
        meaning: "Origins that images may be fetched from",
        advice: "Name the hosts whose images you serve; with * the node fetches any public URL.")

    package let allowPrivateOrigin = SettingKey(
        "allow-private-origin", listOf: .network,
        meaning: "Private networks whose addresses origins may have",
        advice: "Name the narrowest network: anyone who can request a URL can reach into it.")

    package let allowType = SettingKey(
        "allow-type", listOf: .mediaType,
        meaning: "Content types served in addition to images",
        advice: "Browsers save them instead of showing them; do not allow types that they execute.")

    package let pixelLimit = SettingKey(
        "pixel-limit", .countOrNone(0...1 << 40), default: "268402689",
        note: "268402689 (16383 x 16383); 0 for no limit",
        meaning: "Maximum pixels of a fetched image; a larger one gets 502",
        advice: "Displaying an image takes four bytes per pixel. Stored images are still served.")

    package let codedImages = SettingKey(
        "coded-images", .onOff, default: "off",
        meaning: "Whether images other than SVG that have a Content-Encoding are served",
        advice: "They are not inspected: neither their type nor pixel-limit is checked.")

    package let originRedirects = SettingKey(
        "origin-redirects", .count(0...20), default: "5",
        meaning: "Redirects followed in one fetch; 0 follows none",
        advice: "Each is checked against allow-origin and the address guard, like the first URL.")

    package let originConnectTimeout = SettingKey(
        "origin-connect-timeout", .duration(.timeLimits), default: "5s",
        meaning: "Time to establish a connection to an origin",
        advice: "If it is often exceeded, the origin is down or a firewall drops packets.")

    package let originFirstByteTimeout = SettingKey(
        "origin-first-byte-timeout", .duration(.timeLimits), default: "30s",
        meaning: "Time from a request to an origin to the end of the response's head",
        advice: "Raise it for origins that generate images on demand.")

    package let originIdleTimeout = SettingKey(
        "origin-idle-timeout", .duration(.timeLimits), default: "30s",
        meaning: "Longest time without a byte of an origin's body",
        advice: "If it is often exceeded, the origin stalls in the middle of responses.")

    package let originMinRate = SettingKey(
        "origin-min-rate", .bytes(0...1 << 30), default: "1KiB", note: "1KiB; 0 for any",
        meaning: "Lowest rate of a response body, bytes per second over each origin-idle-timeout",
        advice: "Slower fetches are abandoned; lower it for responses that trickle in.")

    package let originTotalTimeout = SettingKey(
        "origin-total-timeout", .duration(.timeLimits), default: "10m",
        meaning: "Total time for one fetch from an origin",
        advice: "Raise it for large images from slow origins.")

    package let originKeepalive = SettingKey(
        "origin-keepalive", .duration(.zero ... .seconds(86_400)), default: "60s",
        meaning: "Time for which an idle connection to an origin is kept open; 0s keeps none",
        advice: "Keep it below the origin's own keep-alive time, so that it does not close first.")

    package let originIdleConnections = SettingKey(
        "origin-idle-connections", .count(0...10_000), default: "32",
        meaning: "Idle connections kept per origin and event loop",
        advice: "Raise it if fetches open many new connections to one origin.")

    package let originConnections = SettingKey(
        "origin-connections", .count(1...100_000), default: "256",
        meaning: "Concurrent connections to one origin, over all event loops",
        advice: "Further fetches wait in the origin's queue; raise it for a strong origin.")

    package let originQueueLimit = SettingKey(
        "origin-queue-limit", .count(0...1_000_000), default: "512",
        meaning: "Fetches waiting for a connection to one origin",
        advice: "At the limit misses of that origin get 503; other misses and hits do not.")

    package let originQueueTimeout = SettingKey(
        "origin-queue-timeout", .duration(.timeLimits), default: "5s",
        meaning: "Longest time a fetch waits for a connection to its origin",
        advice: "After it the misses get 503; the origin is too slow for the load.")

    package let originCircuitFailures = SettingKey(
        "origin-circuit-failures", .countOrNone(0...100_000), default: "20",
        note: "20; 0 for never",
        meaning: "Failed connections or responses after which fetches from an origin are suspended",
        advice: "Lower it to spare a weak origin; raise it if isolated failures are common.")

    package let originCircuitTime = SettingKey(
        "origin-circuit-time", .duration(.timeLimits), default: "5s",
        meaning: "Time for which fetches from an origin are suspended before they are tried again",
        advice: "Misses get 503 meanwhile; the time doubles, up to tenfold, while it still fails.")

    package let originHeadLimit = SettingKey(
        "origin-head-limit", .bytes(1 << 10...1 << 20), default: "64KiB",
        meaning: "Largest head of an origin's response",
        advice: "A response above it counts as failed; check what the origin sends.")

    package let originFieldsLimit = SettingKey(
        "origin-fields-limit", .count(8...10_000), default: "128",
        meaning: "Field lines in the head of an origin's response",
        advice: "A response above it counts as failed; check what the origin sends.")

    package let originBodyLimit = SettingKey(
        "origin-body-limit", .bytes(1 << 10...1 << 40), default: "1GiB",
        meaning: "Largest body of an origin's response, stored or not",
        advice: "A larger one gets 502, or is cut off if its length was not declared.")

    package let originProxy = SettingKey(
        "origin-proxy", .hostPort, example: "proxy.example.com:3128",
        meaning: "Forward proxy through which origins are reached (HTTP CONNECT)",
        advice: "Set it if the node cannot reach its origins directly.")

    package let originProxyNames = SettingKey<Configuration.ProxyNameResolution>(
        "origin-proxy-names", .choice, default: "node",
        meaning: "Where origins' names are resolved when origin-proxy is set",
        advice: "With proxy the address guard sees no addresses: the proxy must refuse them.")

    package let dnsTTL = SettingKey(
        "dns-ttl", .duration(.zero ... .seconds(86_400)), default: "30s",
        meaning: "Time for which a name's addresses are used without another lookup",
        advice: "Lower it if origins move often; 0s looks names up for every new connection.")

    package let dnsFailureTTL = SettingKey(
        "dns-failure-ttl", .duration(.zero ... .seconds(3600)), default: "2s",
        meaning: "Time for which a name that was not found is not looked up again",
        advice: "Raise it if the resolver is loaded with names that do not exist.")

    package let dnsNamesLimit = SettingKey(
        "dns-names-limit", .count(1...1_000_000), default: "10000",
        meaning: "Names whose addresses are cached",
        advice: "Above it the least recently used one is dropped; each takes some 200 bytes.")

    package let fillsLimit = SettingKey(
        "fills-limit", .count(1...1_000_000), default: "1024",
        meaning: "Concurrent fetches from origins",
        advice: "At the limit misses get 503, hits do not; origins are too slow or too few.")

    package let clientShare = SettingKey(
        "client-share", .count(1...100), default: "25",
        meaning: "Percentage of fetches, and of an origin's connections, for one client address",
        advice: "Use 100 if all clients come through one proxy that does not identify them.")

    package let originShare = SettingKey(
        "origin-share", .count(1...100), default: "75",
        meaning: "Percentage of fetches for one site, or for one origin's name or address",
        advice: "Lower it if many sites or origins must be protected from one.")

    package let clientUnreadLimit = SettingKey(
        "client-unread-limit", .bytes(0...1 << 40), default: "64MiB",
        meaning: "Bytes fetched per minute for one client address that no client reads",
        advice: "Above it range requests do not fetch whole images; raise it behind one proxy.")

    package let waitersLimit = SettingKey(
        "waiters-limit", .count(1...10_000_000), default: "100000",
        meaning: "Concurrent requests waiting for fetches",
        advice: "At the limit misses get 503, hits do not; origins are too slow or too few.")

    package let waitTimeout = SettingKey(
        "wait-timeout", .duration(.timeLimits), default: "60s",
        meaning: "Longest time a request waits for the head of its response",
        advice: "After it the client gets 503; the fetch continues for others.")
}
