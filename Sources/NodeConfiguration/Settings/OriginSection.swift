package import Ground

/// The settings of origins, fetches and the sites that are served.
package struct OriginSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Origins"

    package let site = SettingKey(
        "site", listOf: .site,
        meaning: "Host that is answered for, and the base of the URLs its answers come from",
        advice: "Settings of one site are given in the file, under sites; * is any other host.")

    package let allowOrigin = SettingKey(
        "allow-origin", listOf: .originPattern,
        note: "none with sites; else * on loopback, and elsewhere it or site must be given",
        meaning: "Origins that may be fetched from",
        advice: "Name the hosts whose images you serve; * makes the node fetch for anyone.")

    package let allowPrivateOrigin = SettingKey(
        "allow-private-origin", listOf: .network,
        meaning: "Networks of private addresses that origins may have all the same",
        advice: "Name the narrowest network: whoever can ask for a URL can reach into it.")

    package let allowType = SettingKey(
        "allow-type", listOf: .mediaType,
        meaning: "Content types that are served beside images",
        advice: "Browsers save them instead of showing them; name what none runs as a script.")

    package let pixelLimit = SettingKey(
        "pixel-limit", .countOrNone(0...1 << 40), default: "268402689",
        note: "268402689 (16383 x 16383); 0 for no limit",
        meaning: "Pixels of the largest image that is fetched; above it there is 502",
        advice: "Showing takes four bytes a pixel. What is stored already is served on.")

    package let codedImages = SettingKey(
        "coded-images", .onOff, default: "off",
        meaning: "Whether images other than SVG are served that have a Content-Encoding",
        advice: "Nobody looks into them: neither their type nor pixel-limit is checked.")

    package let originRedirects = SettingKey(
        "origin-redirects", .count(0...20), default: "5",
        meaning: "Redirects that are followed in one fetch; 0 follows none",
        advice: "Each is held against allow-origin and the address guard like a first URL.")

    package let originConnectTimeout = SettingKey(
        "origin-connect-timeout", .duration(.timeLimits), default: "5s",
        meaning: "Time for a connection to an origin to be established",
        advice: "If it is exceeded often, the origin is down or a firewall drops packets.")

    package let originFirstByteTimeout = SettingKey(
        "origin-first-byte-timeout", .duration(.timeLimits), default: "30s",
        meaning: "Time from a request to an origin to the end of its answer's head",
        advice: "Raise it for origins that make images on demand.")

    package let originIdleTimeout = SettingKey(
        "origin-idle-timeout", .duration(.timeLimits), default: "30s",
        meaning: "Time without a byte of an origin's body",
        advice: "If it is exceeded often, the origin stalls in the middle of answers.")

    package let originMinRate = SettingKey(
        "origin-min-rate", .bytes(0...1 << 30), default: "1KiB", note: "1KiB; 0 for any",
        meaning: "Bytes of an answer's body in a second, over each origin-idle-timeout",
        advice: "A slower origin is given up; lower it for answers that come drop by drop.")

    package let originTotalTimeout = SettingKey(
        "origin-total-timeout", .duration(.timeLimits), default: "10m",
        meaning: "Time for one fetch from an origin in all",
        advice: "Raise it for large images from slow origins.")

    package let originKeepalive = SettingKey(
        "origin-keepalive", .duration(.zero ... .seconds(86_400)), default: "60s",
        meaning: "Time for which an unused connection to an origin is kept; 0s keeps none",
        advice: "Keep it below the origin's own time, so that it does not close first.")

    package let originIdleConnections = SettingKey(
        "origin-idle-connections", .count(0...10_000), default: "32",
        meaning: "Unused connections that are kept per origin and event loop",
        advice: "Raise it if fetches open many new connections to one origin.")

    package let originConnections = SettingKey(
        "origin-connections", .count(1...100_000), default: "256",
        meaning: "Connections to one origin at one time, over all event loops",
        advice: "Further fetches wait in the origin's queue; raise it for a strong origin.")

    package let originQueueLimit = SettingKey(
        "origin-queue-limit", .count(0...1_000_000), default: "512",
        meaning: "Fetches that wait for a connection to one origin",
        advice: "At the limit misses of that origin get 503; others and hits go on.")

    package let originQueueTimeout = SettingKey(
        "origin-queue-timeout", .duration(.timeLimits), default: "5s",
        meaning: "Time for which a fetch waits for a connection to its origin",
        advice: "After it the misses get 503; the origin is too slow for what is asked of it.")

    package let originCircuitFailures = SettingKey(
        "origin-circuit-failures", .countOrNone(0...100_000), default: "20",
        note: "20; 0 for never",
        meaning: "Failed connections or answers after which an origin is left alone",
        advice: "Lower it to spare a weak origin, raise it if single failures are common.")

    package let originCircuitTime = SettingKey(
        "origin-circuit-time", .duration(.timeLimits), default: "5s",
        meaning: "Time for which it is left alone, before fetches try it again",
        advice: "Misses get 503 meanwhile; the time doubles, up to tenfold, while it fails.")

    package let originHeadLimit = SettingKey(
        "origin-head-limit", .bytes(1 << 10...1 << 20), default: "64KiB",
        meaning: "Largest head of an origin's answer",
        advice: "An answer above it counts as failed; look at what the origin sends.")

    package let originFieldsLimit = SettingKey(
        "origin-fields-limit", .count(8...10_000), default: "128",
        meaning: "Field lines in the head of an origin's answer",
        advice: "An answer above it counts as failed; look at what the origin sends.")

    package let originBodyLimit = SettingKey(
        "origin-body-limit", .bytes(1 << 10...1 << 40), default: "1GiB",
        meaning: "Largest body of an origin's answer, stored or not",
        advice: "A larger one gets 502, or is broken off where its length was not said.")

    package let originProxy = SettingKey(
        "origin-proxy", .hostPort, example: "proxy.example.com:3128",
        meaning: "Forward proxy through which origins are reached (HTTP CONNECT)",
        advice: "Name the proxy where the node has no way of its own to its origins.")

    package let originProxyNames = SettingKey<Configuration.ProxyNameResolution>(
        "origin-proxy-names", .choice, default: "node",
        meaning: "Who turns origins' names into addresses when there is an origin-proxy",
        advice: "With proxy the address guard sees no address: the proxy has to guard.")

    package let dnsTTL = SettingKey(
        "dns-ttl", .duration(.zero ... .seconds(86_400)), default: "30s",
        meaning: "Time for which the addresses of a name are used without asking again",
        advice: "Lower it where origins move often; 0s asks for every new connection.")

    package let dnsFailureTTL = SettingKey(
        "dns-failure-ttl", .duration(.zero ... .seconds(3600)), default: "2s",
        meaning: "Time for which a name that was not found is not asked for again",
        advice: "Raise it if the resolver is loaded with names that do not exist.")

    package let dnsNamesLimit = SettingKey(
        "dns-names-limit", .count(1...1_000_000), default: "10000",
        meaning: "Names whose addresses are remembered",
        advice: "Above it the one asked for longest ago is forgotten; some 200 bytes each.")

    package let fillsLimit = SettingKey(
        "fills-limit", .count(1...1_000_000), default: "1024",
        meaning: "Fetches from origins at one time",
        advice: "At the limit misses get 503 while hits go on; origins are too slow or too few.")

    package let clientShare = SettingKey(
        "client-share", .count(1...100), default: "25",
        meaning: "Percent of fetches and of an origin's connections for a client address",
        advice: "100 where all clients come through one proxy that does not say who they are.")

    package let originShare = SettingKey(
        "origin-share", .count(1...100), default: "75",
        meaning: "Percent of fetches for one site, or one origin's name or address",
        advice: "Lower it where many sites or origins must not suffer from one.")

    package let clientUnreadLimit = SettingKey(
        "client-unread-limit", .bytes(0...1 << 40), default: "64MiB",
        meaning: "Bytes fetched in a minute for a client address that no client reads",
        advice: "Above it ranges are not fetched whole; raise it behind one proxy.")

    package let waitersLimit = SettingKey(
        "waiters-limit", .count(1...10_000_000), default: "100000",
        meaning: "Requests that wait for fetches at one time",
        advice: "At the limit misses get 503 while hits go on; origins are too slow or too few.")

    package let waitTimeout = SettingKey(
        "wait-timeout", .duration(.timeLimits), default: "60s",
        meaning: "Time for which a request waits for the head of its answer",
        advice: "After it the client gets 503; the fetch goes on for others.")
}
