/// One row of the table of metrics: a family of counters or gauges under one Prometheus name.
package struct MetricFamily: Sendable {
    /// Whether a value only grows.
    package enum Kind: String, Sendable {
        case counter
        case gauge
    }

    /// One series of a family; the label's value is empty if the family has no label.
    package struct Member: Sendable {
        package let metric: Metric
        package let label: String
    }

    /// The Prometheus name, unit and `_total` included.
    package let name: String
    package let kind: Kind
    /// What one is: `bytes`, or the noun that is counted.
    package let unit: String
    /// The label that tells the members apart; empty if there is one member.
    package let label: String
    package let members: [Member]
    /// One line for the operator, without a full stop.
    package let meaning: String
    /// What to do about a value that looks wrong.
    package let advice: String

    init(
        _ name: String, _ kind: Kind, _ unit: String, _ metric: Metric, meaning: String,
        advice: String
    ) {
        self.init(name, kind, unit, by: "", [(metric, "")], meaning: meaning, advice: advice)
    }

    init(
        _ name: String, _ kind: Kind, _ unit: String, by label: String,
        _ members: [(Metric, String)], meaning: String, advice: String
    ) {
        self.name = name
        self.kind = kind
        self.unit = unit
        self.label = label
        self.members = members.map { Member(metric: $0.0, label: $0.1) }
        self.meaning = meaning
        self.advice = advice
    }
}

extension MetricFamily {
    /// Every family once; every ``Metric`` is a member of exactly one.
    package static let table: [MetricFamily] =
        requestFamilies + connectionFamilies + originFamilies + memoryFamilies
        + pressureFamilies + diskFamilies + clusterFamilies + invalidationFamilies

    private static let requestFamilies = [
        MetricFamily(
            "nuthatch_requests_total", .counter, "requests", by: "cache",
            [
                (.requestsHit, "hit"), (.requestsHitOnDisk, "disk"),
                (.requestsRevalidated, "revalidated"),
                (.requestsMissed, "miss"), (.requestsFromPeer, "peer"),
                (.requestsCollapsed, "collapsed"), (.requestsStale, "stale"),
                (.requestsPassed, "passed"), (.requestsOther, "none"),
            ],
            meaning: "Requests by how the cache took part in the answer",
            advice: "If misses dominate, compare evictions and the origins' freshness lifetimes."),
        MetricFamily(
            "nuthatch_answers_total", .counter, "answers", by: "status",
            [
                (.answersSuccess, "2xx"), (.answersPartial, "206"),
                (.answersRedirected, "3xx"), (.answersNotModified, "304"),
                (.answersClientError, "4xx"), (.answersServerError, "5xx"),
            ],
            meaning: "Answers by status; 206 and 304 are not counted in their classes",
            advice: "5xx: see origin fetches, timeouts, and the limits of fills and waiters."),
        MetricFamily(
            "nuthatch_sent_bytes_total", .counter, "bytes", .sentBytes,
            meaning: "Bytes written for clients, heads included",
            advice: "Compare with the received bytes of origins for what the cache saves."),
        MetricFamily(
            "nuthatch_malformed_requests_total", .counter, "requests", .requestsMalformed,
            meaning: "Requests refused because their bytes are no valid HTTP message",
            advice: "A steady rate is a broken client or proxy, or a scanner."),
        MetricFamily(
            "nuthatch_signatures_refused_total", .counter, "requests", by: "reason",
            [
                (.signaturesMissing, "unsigned"), (.signaturesMalformed, "malformed"),
                (.signaturesForged, "forged"), (.signaturesExpired, "expired"),
            ],
            meaning: "Requests refused because of their URL's signature, or for want of one",
            advice: "forged after a change of keys: a signer has a key that nodes have not."),
        MetricFamily(
            "nuthatch_access_lines_dropped_total", .counter, "lines", .accessLinesDropped,
            meaning: "Lines of the access log lost because their reader was too slow",
            advice: "Speed up what reads standard output, or turn access-log off."),
    ]

    private static let connectionFamilies = [
        MetricFamily(
            "nuthatch_connections_open", .gauge, "connections", .connectionsOpen,
            meaning: "Connections of clients that are open",
            advice: "Near the limit, raise connections-limit or shorten idle-timeout."),
        MetricFamily(
            "nuthatch_connections_accepted_total", .counter, "connections", .connectionsAccepted,
            meaning: "Connections of clients accepted",
            advice: "If it grows as fast as requests, clients do not keep connections alive."),
        MetricFamily(
            "nuthatch_connections_refused_total", .counter, "connections", .connectionsRefused,
            meaning: "Connections of clients closed at once because of connections-limit",
            advice: "Raise the descriptor limit (ulimit -n) or connections-limit."),
        MetricFamily(
            "nuthatch_tls_handshakes_total", .counter, "handshakes", by: "outcome",
            [
                (.handshakes, "full"), (.handshakesResumed, "resumed"),
                (.handshakesFailed, "failed"), (.handshakesRefused, "refused"),
            ],
            meaning: "TLS handshakes with clients, by what became of them",
            advice: "Refused ones met tls-handshakes-limit; why others failed is logged at debug."),
        MetricFamily(
            "nuthatch_timeouts_total", .counter, "timeouts", by: "kind",
            [
                (.timeoutsHandshake, "handshake"),
                (.timeoutsIdle, "idle"), (.timeoutsHead, "head"), (.timeoutsBody, "body"),
                (.timeoutsSend, "send"), (.timeoutsOriginConnect, "origin_connect"),
                (.timeoutsOriginFirstByte, "origin_first_byte"),
                (.timeoutsOriginIdle, "origin_idle"), (.timeoutsOriginTotal, "origin_total"),
            ],
            meaning: "Time limits that ran out, by the setting that says the time",
            advice: "idle is ordinary; origin kinds mean that an origin is slow or down."),
    ]

    private static let memoryFamilies = [
        MetricFamily(
            "nuthatch_evictions_total", .counter, "entries", .evictions,
            meaning: "Entries removed from memory to make room",
            advice: "A high rate with many misses asks for a larger memory-limit."),
        MetricFamily(
            "nuthatch_memory_used_bytes", .gauge, "bytes", .memoryUsedBytes,
            meaning: "Memory that entries take: bodies, heads and bookkeeping",
            advice: "At the limit after a while is ordinary."),
        MetricFamily(
            "nuthatch_memory_limit_bytes", .gauge, "bytes", .memoryLimitBytes,
            meaning: "What memory-limit says",
            advice: "Change it with memory-limit."),
        MetricFamily(
            "nuthatch_memory_pinned_bytes", .gauge, "bytes", .memoryPinnedBytes,
            meaning: "Memory of evicted entries that clients are still being sent",
            advice: "Large values mean many slow clients; shorten send-timeout."),
        MetricFamily(
            "nuthatch_memory_entries", .gauge, "entries", .memoryEntries,
            meaning: "Entries in memory",
            advice: "Used bytes by entries is the mean size of an image."),
    ]
}
