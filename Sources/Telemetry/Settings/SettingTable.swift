import Ground

extension Setting {
    /// All settings, each once, in the order of ``SettingName``.
    package static let table: [Setting] =
        nodeRows + memoryRows + diskRows
        + originRows + originConnectionRows + originResponseRows + fetchRows
        + clientRows + requestRows + tlsRows + clusterRows

    private static let nodeRows: [Setting] = [
        Setting(
            .config, in: .node, .path, needsRestart: true,
            meaning: "YAML file whose keys are the names of these settings",
            advice: "Flags and environment variables beat the file; a file cannot name another."),
        Setting(
            .listen, in: .node, .address, default: "127.0.0.1:8080", isList: true,
            needsRestart: true,
            meaning: "Where clients are served; port 0 lets the kernel choose",
            advice:
                "Beyond loopback the node must be told what it may fetch: allow-origin or site."),
        Setting(
            .adminListen, in: .node, .addressOrOff, default: "127.0.0.1:8081",
            needsRestart: true,
            meaning: "Where operators are served: health, metrics, purges and all else",
            advice: "Beyond loopback only with admin-token-file or client-ca; off closes it."),
        Setting(
            .adminTokenFile, in: .node, .path,
            meaning: "File with the tokens of operators, a line each: read, purge or admin, and it",
            advice: "With it everybody needs one, on loopback too; read again at SIGHUP."),
        Setting(
            .loops, in: .node, .count(0...64), default: "0", note: "0 (one per core)",
            needsRestart: true,
            meaning: "Event loops, each on a thread of its own",
            advice: "More loops than cores do not help; fewer leave cores to other programs."),
        Setting(
            .accessLog, in: .node, .choice(["off", "combined", "json"]), default: "off",
            meaning: "One line per request on standard output, with its id",
            advice: "Lines that the reader does not take in time are dropped and counted."),
        Setting(
            .logLevel, in: .node,
            .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            default: "info",
            meaning: "The least severe message that is logged on standard error",
            advice: "debug and trace cost time on every request."),
        Setting(
            .logFormat, in: .node, .choice(["text", "logfmt", "json"]), default: "logfmt",
            meaning: "How a message of the log on standard error is written, one a line",
            advice: "text for people, logfmt for people and collectors, json for collectors."),
        Setting(
            .decisionTokenFile, in: .node, .path,
            meaning: "File with the token that makes an answer tell how it came about",
            advice: "Without it no request can ask; at least 16 bytes, read again at SIGHUP."),
        Setting(
            .signingKeyFile, in: .node, .path,
            meaning: "File with the keys of signed URLs; with it images are served to those alone",
            advice: "A key a line, the first signs and all are accepted; read again at SIGHUP."),
        Setting(
            .drainTimeout, in: .node, .duration(.zero ... .seconds(3600)), default: "30s",
            meaning: "Time that running requests are given after SIGTERM",
            advice: "Keep it below the time after which the supervisor kills the process."),
    ]

    private static let memoryRows: [Setting] = [
        Setting(
            .memoryLimit, in: .memory, .bytes(16 << 20...1 << 40), default: "512MiB",
            meaning: "Memory that stored images may take, heads and bookkeeping included",
            advice: "Raise it while evictions go on and the machine has memory to spare."),
        Setting(
            .memoryEntries, in: .memory, .count(0...1_000_000_000), default: "0",
            note: "0 (no limit)",
            meaning: "Number of images that may be stored",
            advice: "Leave it at 0 unless something other than memory bounds the number."),
        Setting(
            .memoryPressure, in: .memory, .choice(["on", "off"]), default: "on",
            meaning: "Whether memory is given up before the container or machine runs out of it",
            advice: "off where something else keeps the process within its memory."),
        Setting(
            .objectLimit, in: .memory, .bytes(1 << 10...1 << 40), default: "64MiB",
            note: "64MiB, or memory-limit where that is less",
            meaning: "Largest body that is stored; larger ones are passed through",
            advice: "Raise it if larger images are asked for often; at most memory-limit."),
        Setting(
            .variantsLimit, in: .memory, .count(1...1_000), default: "64",
            meaning: "Answers of a site that are stored under one URL, for requests that differ",
            advice: "Raise it only if more forms of one page are in use; the least used ones go."),
        Setting(
            .defaultTTL, in: .memory, .duration(.zero ... .seconds(365 * 86_400)), default: "1h",
            meaning: "Time for which an image is fresh whose origin does not say",
            advice: "Shorten it if images change under the same URL and origins send no lifetime."),
    ]

    private static let diskRows: [Setting] = [
        Setting(
            .cacheDir, in: .disk, .path, note: "none, which keeps images in memory only",
            needsRestart: true,
            meaning: "Directory of the disk cache; of nodes that share it each has its own below",
            advice: "Give it a disk that outlives the container."),
        Setting(
            .diskLimit, in: .disk, .bytes(0...1 << 50), default: "10GiB", needsRestart: true,
            meaning: "Disk that the node takes, everything included; 0 turns the disk cache off",
            advice: "Raise it while entries are evicted and the disk has room."),
        Setting(
            .ageLimit, in: .disk, .duration(.zero ... .seconds(10 * 365 * 86_400)),
            default: "720h", note: "720h; 0s for no limit", needsRestart: true,
            meaning: "Time after which an image that nobody asked for leaves the disk",
            advice: "Shorten it to free room for other images sooner than reclaim does."),
        Setting(
            .touchInterval, in: .disk, .duration(.zero ... .seconds(3600)), default: "5s",
            note: "5s; 0s for never", needsRestart: true,
            meaning: "How often the disk cache is told which images were served from memory",
            advice: "Without it an image served from memory looks idle, and leaves the disk."),
        Setting(
            .diskQueueLimit, in: .disk, .bytes(1 << 20...1 << 34), default: "32MiB",
            note: "32MiB, or a quarter of memory-limit where that is less", needsRestart: true,
            meaning: "Images that wait to be written to disk; further ones are not kept there",
            advice: "If records are dropped with a sound disk, raise it for bursts of misses."),
        Setting(
            .diskThreads, in: .disk, .count(1...256), default: "4", needsRestart: true,
            meaning: "Threads that read what the page cache does not hold",
            advice: "As many as the disk serves at one time: few for one, many for an array."),
    ]

    private static let originRows: [Setting] = [
        Setting(
            .site, in: .origins, .site, isList: true,
            meaning: "Host that is answered for, and the base of the URLs its answers come from",
            advice: "Settings of one site are given in the file, under sites; * is any other host."
        ),
        Setting(
            .allowOrigin, in: .origins, .originPattern,
            note: "none with sites; else * on loopback, and elsewhere it or site must be given",
            isList: true,
            meaning: "Origins that may be fetched from",
            advice: "Name the hosts whose images you serve; * makes the node fetch for anyone."),
        Setting(
            .allowPrivateOrigin, in: .origins, .network, isList: true,
            meaning: "Networks of private addresses that origins may have all the same",
            advice: "Name the narrowest network: whoever can ask for a URL can reach into it."),
        Setting(
            .allowType, in: .origins, .mediaType, isList: true,
            meaning: "Content types that are served beside images",
            advice: "Browsers save them instead of showing them; name what none runs as a script."),
        Setting(
            .pixelLimit, in: .origins, .count(0...1 << 40), default: "268402689",
            note: "268402689 (16383 x 16383); 0 for no limit",
            meaning: "Pixels of the largest image that is fetched; above it there is 502",
            advice: "Showing takes four bytes a pixel. What is stored already is served on."),
        Setting(
            .codedImages, in: .origins, .choice(["on", "off"]), default: "off",
            meaning: "Whether images other than SVG are served that have a Content-Encoding",
            advice: "Nobody looks into them: neither their type nor pixel-limit is checked."),
        Setting(
            .originRedirects, in: .origins, .count(0...20), default: "5",
            meaning: "Redirects that are followed in one fetch; 0 follows none",
            advice: "Each is held against allow-origin and the address guard like a first URL."),
        Setting(
            .originConnectTimeout, in: .origins, timeLimits, default: "5s",
            meaning: "Time for a connection to an origin to be established",
            advice: "If it is exceeded often, the origin is down or a firewall drops packets."),
        Setting(
            .originFirstByteTimeout, in: .origins, timeLimits, default: "30s",
            meaning: "Time from a request to an origin to the end of its answer's head",
            advice: "Raise it for origins that make images on demand."),
        Setting(
            .originIdleTimeout, in: .origins, timeLimits, default: "30s",
            meaning: "Time without a byte of an origin's body",
            advice: "If it is exceeded often, the origin stalls in the middle of answers."),
        Setting(
            .originMinRate, in: .origins, .bytes(0...1 << 30), default: "1KiB",
            note: "1KiB; 0 for any",
            meaning: "Bytes of an answer's body in a second, over each origin-idle-timeout",
            advice: "A slower origin is given up; lower it for answers that come drop by drop."),
        Setting(
            .originTotalTimeout, in: .origins, timeLimits, default: "10m",
            meaning: "Time for one fetch from an origin in all",
            advice: "Raise it for large images from slow origins."),
    ]

    private static let originConnectionRows: [Setting] = [
        Setting(
            .originKeepalive, in: .origins, .duration(.zero ... .seconds(86_400)), default: "60s",
            meaning: "Time for which an unused connection to an origin is kept; 0s keeps none",
            advice: "Keep it below the origin's own time, so that it does not close first."),
        Setting(
            .originIdleConnections, in: .origins, .count(0...10_000), default: "32",
            meaning: "Unused connections that are kept per origin and event loop",
            advice: "Raise it if fetches open many new connections to one origin."),
        Setting(
            .originConnections, in: .origins, .count(1...100_000), default: "256",
            meaning: "Connections to one origin at one time, over all event loops",
            advice: "Further fetches wait in the origin's queue; raise it for a strong origin."),
        Setting(
            .originQueueLimit, in: .origins, .count(0...1_000_000), default: "512",
            meaning: "Fetches that wait for a connection to one origin",
            advice: "At the limit misses of that origin get 503; others and hits go on."),
        Setting(
            .originQueueTimeout, in: .origins, timeLimits, default: "5s",
            meaning: "Time for which a fetch waits for a connection to its origin",
            advice: "After it the misses get 503; the origin is too slow for what is asked of it."),
        Setting(
            .originCircuitFailures, in: .origins, .count(0...100_000), default: "20",
            note: "20; 0 for never",
            meaning: "Failed connections or answers after which an origin is left alone",
            advice: "Lower it to spare a weak origin, raise it if single failures are common."),
        Setting(
            .originCircuitTime, in: .origins, timeLimits, default: "5s",
            meaning: "Time for which it is left alone, before fetches try it again",
            advice: "Misses get 503 meanwhile; the time doubles, up to tenfold, while it fails."),
    ]

    private static let originResponseRows: [Setting] = [
        Setting(
            .originHeadLimit, in: .origins, .bytes(1 << 10...1 << 20), default: "64KiB",
            meaning: "Largest head of an origin's answer",
            advice: "An answer above it counts as failed; look at what the origin sends."),
        Setting(
            .originFieldsLimit, in: .origins, .count(8...10_000), default: "128",
            meaning: "Field lines in the head of an origin's answer",
            advice: "An answer above it counts as failed; look at what the origin sends."),
        Setting(
            .originBodyLimit, in: .origins, .bytes(1 << 10...1 << 40), default: "1GiB",
            meaning: "Largest body of an origin's answer, stored or not",
            advice: "A larger one gets 502, or is broken off where its length was not said."),
        Setting(
            .originProxy, in: .origins, .hostPort,
            meaning: "Forward proxy through which origins are reached (HTTP CONNECT)",
            advice: "Name the proxy where the node has no way of its own to its origins."),
        Setting(
            .originProxyNames, in: .origins, .choice(["node", "proxy"]), default: "node",
            meaning: "Who turns origins' names into addresses when there is an origin-proxy",
            advice: "With proxy the address guard sees no address: the proxy has to guard."),
        Setting(
            .dnsTTL, in: .origins, .duration(.zero ... .seconds(86_400)), default: "30s",
            meaning: "Time for which the addresses of a name are used without asking again",
            advice: "Lower it where origins move often; 0s asks for every new connection."),
        Setting(
            .dnsFailureTTL, in: .origins, .duration(.zero ... .seconds(3600)), default: "2s",
            meaning: "Time for which a name that was not found is not asked for again",
            advice: "Raise it if the resolver is loaded with names that do not exist."),
        Setting(
            .dnsNamesLimit, in: .origins, .count(1...1_000_000), default: "10000",
            meaning: "Names whose addresses are remembered",
            advice: "Above it the one asked for longest ago is forgotten; some 200 bytes each."),
    ]

    private static let fetchRows: [Setting] = [
        Setting(
            .fillsLimit, in: .origins, .count(1...1_000_000), default: "1024",
            meaning: "Fetches from origins at one time",
            advice: "At the limit misses get 503 while hits go on; origins are too slow or too few."
        ),
        Setting(
            .clientShare, in: .origins, .count(1...100), default: "25",
            meaning: "Percent of fetches and of an origin's connections for a client address",
            advice: "100 where all clients come through one proxy that does not say who they are."),
        Setting(
            .originShare, in: .origins, .count(1...100), default: "75",
            meaning: "Percent of fetches for one site, or one origin's name or address",
            advice: "Lower it where many sites or origins must not suffer from one."),
        Setting(
            .clientUnreadLimit, in: .origins, .bytes(0...1 << 40), default: "64MiB",
            meaning: "Bytes fetched in a minute for a client address that no client reads",
            advice: "Above it ranges are not fetched whole; raise it behind one proxy."),
        Setting(
            .waitersLimit, in: .origins, .count(1...10_000_000), default: "100000",
            meaning: "Requests that wait for fetches at one time",
            advice: "At the limit misses get 503 while hits go on; origins are too slow or too few."
        ),
        Setting(
            .waitTimeout, in: .origins, timeLimits, default: "60s",
            meaning: "Time for which a request waits for the head of its answer",
            advice: "After it the client gets 503; the fetch goes on for others."),
    ]

    private static let clientRows: [Setting] = [
        Setting(
            .trustedProxy, in: .clients, .network, isList: true,
            meaning: "Networks whose connections begin with the PROXY protocol, version 1 or 2",
            advice: "Name only load balancers that send it: they say who connects, and no more."),
        Setting(
            .forwardedFrom, in: .clients, .network, isList: true,
            meaning: "Networks of proxies that write X-Forwarded-For, -Proto and -Host themselves",
            advice: "Client, scheme and host are what they say; from others these fields end here."
        ),
        Setting(
            .purgeFrom, in: .clients, .network, isList: true,
            meaning: "Networks of clients that may use PURGE without a token",
            advice: "A proxy that says nothing of clients lends its address to all behind it."),
        Setting(
            .purgeTokenFile, in: .clients, .path,
            meaning: "File with the bearer tokens of clients that may use PURGE",
            advice: "A token a line, at least 16 characters; read again at SIGHUP."),
        Setting(
            .connectionsLimit, in: .clients, .count(0...10_000_000), default: "0",
            note: "0 (what the descriptor limit allows)", needsRestart: true,
            meaning: "Connections of clients at one time",
            advice: "If connections are refused, raise the descriptor limit (ulimit -n) first."),
        Setting(
            .connectionsPerClient, in: .clients, .count(0...10_000_000), default: "0",
            note: "0 (a quarter, at least 256, at most three quarters; none on loopback)",
            meaning: "Connections of one client's address, or /64 of IPv6, at one time",
            advice: "A proxy without the PROXY protocol is one client: raise it to its needs."
        ),
        Setting(
            .pipelineLimit, in: .clients, .bytes(1 << 10...16 << 20), default: "64KiB",
            meaning: "Bytes of further requests read from a connection while one is answered",
            advice: "Above it the node reads no further until answers are sent; nothing is lost."),
    ]

    private static let requestRows: [Setting] = [
        Setting(
            .requestHeadLimit, in: .clients, .bytes(1 << 10...1 << 20), default: "32KiB",
            meaning: "Largest head of a request",
            advice: "Clients above it get 431; large cookies are the usual cause."),
        Setting(
            .requestFieldsLimit, in: .clients, .count(8...10_000), default: "100",
            meaning: "Field lines of one request",
            advice: "Clients above it get 431; ordinary ones send fewer than 40."),
        Setting(
            .requestBodyLimit, in: .clients, .bytes(0...1 << 30), default: "1MiB",
            meaning: "Largest body of a request; bodies are read and dropped",
            advice: "Clients above it get 413; a client of images has no need of a body."),
        Setting(
            .urlLimit, in: .clients, .bytes(256...64 << 10), default: "8KiB",
            note: "8KiB, or request-head-limit where that is less",
            meaning: "Longest URL of an image, in bytes; a longer one gets 414",
            advice: "At most request-head-limit; raise both where origins have longer ones."),
        Setting(
            .rangesLimit, in: .clients, .count(1...1000), default: "16",
            meaning: "Ranges that one request may ask for",
            advice: "A request for more is answered with the whole image."),
        Setting(
            .idleTimeout, in: .clients, timeLimits, default: "60s",
            meaning: "Time for which a connection may stay open without a request",
            advice: "Shorten it if idle clients take all connections."),
        Setting(
            .headTimeout, in: .clients, timeLimits, default: "10s",
            meaning: "Time from a request's first byte to the end of its head",
            advice: "Raise it only for clients on very slow links."),
        Setting(
            .bodyTimeout, in: .clients, timeLimits, default: "30s",
            meaning: "Time from the end of a request's head to the end of its body",
            advice: "Raise it only for clients on very slow links."),
        Setting(
            .bodyMinRate, in: .clients, .bytes(1...1 << 30), default: "1KiB",
            meaning: "Bytes of a body to a site for which body-timeout is a second longer",
            advice: "A slower client gets 408; lower it only for clients on very slow links."),
        Setting(
            .sendTimeout, in: .clients, timeLimits, default: "60s",
            meaning: "Time in which a client takes not one byte of its answer",
            advice: "Shorten it if stalled clients hold memory."),
        Setting(
            .streamsLimit, in: .clients, .count(1...1000), default: "128",
            meaning: "Requests at one time on one connection of HTTP/2",
            advice: "Clients wait above it; browsers ask for fewer than 128 at a time."),
    ]

    /// The range of time limits that must be finite: 10 ms to a day.
    static let timeLimits = SettingKind.duration(.milliseconds(10) ... .seconds(86_400))
}

extension SettingName {
    /// The row of the setting in the table; every name has one.
    package var setting: Setting {
        guard let row = Setting.table.first(where: { $0.name == self }) else {
            preconditionFailure("no row for \(self)")
        }
        return row
    }
}
