/// The table of metrics.
package enum MetricTable {
    /// All families.
    ///
    /// Every ``Metric``, ``SiteMetric``, ``OutcomeMetric`` and ``MemberMetric`` is in exactly one
    /// of them, apart from sums.
    package static let families: [MetricFamily] =
        requestFamilies + siteFamilies + connectionFamilies + OriginMetrics.families
        + memoryFamilies + pressureFamilies + DiskMetrics.families + ClusterMetrics.families
        + errorFamilies

    /// The requests by the role of the cache, as the family `nuthatch_requests_total`.
    package static let requests = MetricFamily(
        "nuthatch_requests_total", .counter, "requests", by: "cache",
        [
            (.requestsHit, "hit"), (.requestsHitOnDisk, "disk"),
            (.requestsRevalidated, "revalidated"),
            (.requestsMissed, "miss"), (.requestsFromPeer, "peer"),
            (.requestsCollapsed, "collapsed"), (.requestsStale, "stale"),
            (.requestsBypassed, "passed"), (.requestsGenerated, "none"),
        ],
        meaning: "Requests by the role of the cache in the response",
        advice: "If misses dominate, compare evictions and the origins' freshness lifetimes.")

    /// The responses by status, as the family `nuthatch_answers_total`.
    package static let responses = MetricFamily(
        "nuthatch_answers_total", .counter, "answers", by: "status",
        [
            (.responsesSuccess, "2xx"), (.responsesPartial, "206"),
            (.responsesRedirected, "3xx"), (.responsesNotModified, "304"),
            (.responsesClientError, "4xx"), (.responsesServerError, "5xx"),
        ],
        meaning: "Responses by status; 206 and 304 are not counted in their classes",
        advice:
            "5xx: see origin fetches, timeouts, and the limits on fetches and waiting "
            + "requests.")

    private static let requestFamilies = [
        requests,
        MetricFamily(
            "nuthatch_request_duration_seconds", .histogram, "seconds", divisor: 1_000_000_000,
            .outcomes(.duration),
            meaning:
                "Time from the head of a request to the end of its response, for complete "
                + "responses, by the role of the cache",
            advice:
                "Slow hits: clients read slowly, or the node lacks CPU; otherwise see the "
                + "origin metrics."),
        MetricFamily(
            "nuthatch_body_bytes_total", .counter, "bytes", .outcomes(.bodyBytes),
            meaning: "Body bytes of complete responses, by the role of the cache",
            advice:
                "Byte hit ratio: the sum without miss, passed and none, divided by the sum "
                + "without passed and none."),
        responses,
        MetricFamily(
            "nuthatch_answers_unfinished_total", .counter, "answers", by: "side",
            [(.responsesClientClosed, "client"), (.responsesAborted, "node")],
            meaning:
                "Responses not started or not completed, because the client closed the "
                + "connection or the rest did not arrive",
            advice: "node: an origin or a peer aborts responses; the log names the origin."),
        MetricFamily(
            "nuthatch_sent_bytes_total", .counter, "bytes", .sentBytes,
            meaning: "Bytes sent to clients, including heads",
            advice: "Compare with the bytes received from origins to see what the cache saves."),
        MetricFamily(
            "nuthatch_malformed_requests_total", .counter, "requests", .requestsMalformed,
            meaning: "Requests refused because they are not valid HTTP messages",
            advice: "A steady rate indicates a broken client or proxy, or a scanner."),
        MetricFamily(
            "nuthatch_signatures_refused_total", .counter, "requests", by: "reason",
            [
                (.signaturesMissing, "unsigned"), (.signaturesMalformed, "malformed"),
                (.signaturesForged, "forged"), (.signaturesExpired, "expired"),
            ],
            meaning: "Requests refused because the signature of their URL is missing or invalid",
            advice:
                "forged after a change of keys: a signer uses a key that the nodes do not "
                + "have."),
        MetricFamily(
            "nuthatch_access_lines_dropped_total", .counter, "lines", .accessLinesDropped,
            meaning: "Lines of the access log lost because the reader was too slow",
            advice: "Speed up the reader of standard output, or turn access-log off."),
    ]

    private static let connectionFamilies = [
        MetricFamily(
            "nuthatch_connections_open", .gauge, "connections", .connectionsOpen,
            meaning: "Open connections from clients",
            advice: "Near the limit, raise connections-limit or shorten idle-timeout."),
        MetricFamily(
            "nuthatch_connections_accepted_total", .counter, "connections", .connectionsAccepted,
            meaning: "Accepted connections from clients",
            advice: "If it grows as fast as requests, clients do not keep connections alive."),
        MetricFamily(
            "nuthatch_connections_refused_total", .counter, "connections", .connectionsRefused,
            meaning:
                "Connections from clients closed at once because of connections-limit or "
                + "connections-per-client",
            advice:
                "Raise the limit on file descriptors (ulimit -n), or the setting that is too "
                + "low."),
        MetricFamily(
            "nuthatch_connections_yielded_total", .counter, "connections", .connectionsEvicted,
            meaning: "Idle connections from clients closed to make room for new ones",
            advice:
                "As for connections_refused: the limit is reached, though not by active "
                + "requests."),
        MetricFamily(
            "nuthatch_tls_handshakes_total", .counter, "handshakes", by: "outcome",
            [
                (.handshakes, "full"), (.handshakesResumed, "resumed"),
                (.handshakesFailed, "failed"), (.handshakesRefused, "refused"),
            ],
            meaning: "TLS handshakes with clients, by outcome",
            advice:
                "refused: tls-handshakes-limit was reached; the reasons for failed are logged "
                + "at level debug."),
        MetricFamily(
            "nuthatch_timeouts_total", .counter, "timeouts", by: "kind",
            [
                (.timeoutsHandshake, "handshake"),
                (.timeoutsIdle, "idle"), (.timeoutsHead, "head"), (.timeoutsBody, "body"),
                (.timeoutsSend, "send"), (.timeoutsOriginConnect, "origin_connect"),
                (.timeoutsOriginFirstByte, "origin_first_byte"),
                (.timeoutsOriginIdle, "origin_idle"), (.timeoutsOriginTotal, "origin_total"),
            ],
            meaning: "Expired timeouts, by kind",
            advice:
                "idle is normal; the kinds that begin with origin mean that an origin is slow "
                + "or down."),
    ]

    private static let memoryFamilies = [
        MetricFamily(
            "nuthatch_evictions_total", .counter, "entries", by: "reason",
            [
                (.evictionsForCapacity, "room"), (.evictionsForEntryLimit, "entries"),
                (.evictionsForShare, "share"), (.evictionsForLoweredLimit, "limit"),
                (.evictionsForPressure, "pressure"), (.evictionsPurged, "purged"),
            ],
            meaning:
                "Entries removed from memory: for capacity, for memory-entries, for the share "
                + "of their site, because a limit was lowered, under memory pressure, or "
                + "because they were found to be purged",
            advice: "Many for room together with many misses: raise memory-limit."),
        MetricFamily(
            "nuthatch_variants_dropped_total", .counter, "entries", .variantsDropped,
            meaning:
                "Variants of sites' responses removed in favour of other variants of the same "
                + "URL",
            advice:
                "A field in Vary has a different value for nearly every client; or raise "
                + "variants-limit."),
        MetricFamily(
            "nuthatch_memory_used_bytes", .gauge, "bytes", .memoryUsedBytes,
            meaning: "Memory used of memory-limit; nuthatch_memory_part_bytes has its parts",
            advice: "Reaching the limit after some time is normal."),
        MetricFamily(
            "nuthatch_memory_limit_bytes", .gauge, "bytes", .memoryLimitBytes,
            meaning: "The value of memory-limit",
            advice: "Change it with memory-limit."),
        MetricFamily(
            "nuthatch_memory_part_bytes", .gauge, "bytes", by: "part",
            [
                (.memoryBodyBytes, "bodies"), (.memoryOverheadBytes, "overhead"),
                (.memoryFetchBytes, "fetches"), (.memoryPinnedBytes, "pinned"),
            ],
            meaning:
                "Parts of the memory used: bodies of entries; their keys, heads and "
                + "bookkeeping; bodies being fetched; and removed entries that are still being "
                + "sent",
            advice: "Much pinned means many slow clients; shorten send-timeout."),
        MetricFamily(
            "nuthatch_memory_entries", .gauge, "entries", .memoryEntries,
            meaning: "Entries in memory",
            advice: "Used bytes divided by entries is the mean size of an image."),
    ]

    /// The families with series for each site.
    private static let siteFamilies = [
        MetricFamily(
            "nuthatch_site_requests_total", .counter, "requests",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { .init(metric: .requests($0), label: $0.label) }),
            meaning: "Requests for a site, by the role of the cache in the response",
            advice: "Many passed: check the site's Cache-Control, Set-Cookie and request methods."),
        MetricFamily(
            "nuthatch_site_body_bytes_total", .counter, "bytes",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { .init(metric: .bodyBytes($0), label: $0.label) }),
            meaning: "Body bytes of a site's complete responses, by the role of the cache",
            advice:
                "Few bytes but many hits from memory: the large responses are served from "
                + "elsewhere."),
        MetricFamily(
            "nuthatch_site_origin_received_bytes_total", .counter, "bytes",
            .sites(label: "", [.init(metric: .originBytes, label: "")]),
            meaning: "Body bytes received from a site's origin",
            advice: "Growth without misses comes from responses that are passed and not stored."),
        MetricFamily(
            "nuthatch_site_answers_total", .counter, "answers",
            .sites(
                label: "status",
                StatusClass.allCases.map { .init(metric: .responses($0), label: $0.label) }),
            meaning: "Responses of a site by class of their status",
            advice: "5xx: /admin/v1/conditions and /admin/v1/sites name the origin that fails."),
    ]

    /// The families of memory pressure.
    private static let pressureFamilies = [
        MetricFamily(
            "nuthatch_memory_held_limit_bytes", .gauge, "bytes", .memoryEffectiveLimitBytes,
            meaning: "The effective memory limit: memory-limit, or less under memory pressure",
            advice: "If it stays below the limit, lower memory-limit or give the node memory."),
        MetricFamily(
            "nuthatch_memory_yields", .gauge, "nodes", .memoryUnderPressure,
            meaning: "Whether the effective memory limit is below memory-limit: 1 if so, else 0",
            advice: "The log says which limit is short of memory."),
        MetricFamily(
            "nuthatch_memory_headroom_bytes", .gauge, "bytes", .memoryHeadroomBytes,
            meaning:
                "Memory left below the nearest limit of the container or machine, not "
                + "counting the page cache",
            advice:
                "At 0 the kernel kills processes; the node keeps an eighth of the limit free "
                + "where possible."),
        MetricFamily(
            "nuthatch_memory_stalled_ratio", .gauge, "ratio", divisor: 1_000,
            .memoryStalledPermille,
            meaning: "Share of the last 10 s in which all tasks waited for memory (PSI, full)",
            advice:
                "From 0.1 on, the node releases memory; the machine swaps or has no page "
                + "cache left."),
        MetricFamily(
            "nuthatch_memory_shrinks_total", .counter, "shrinks", by: "reason",
            [(.memoryShrinksForHeadroom, "room"), (.memoryShrinksForStalls, "stall")],
            meaning: "Reductions of the effective memory limit, by reason",
            advice: "A steady rate means that another process takes memory repeatedly."),
    ]

    /// The families of errors by the side that caused them.
    private static let errorFamilies = [
        MetricFamily(
            "nuthatch_errors_total", .counter, "errors",
            .sums(
                label: "side",
                [
                    .init(metrics: clientErrors, label: "client"),
                    .init(metrics: peerErrors, label: "peer"),
                    .init(metrics: originErrors, label: "origin"),
                    .init(metrics: diskErrors, label: "disk"),
                    .init(metrics: nodeErrors, label: "node"),
                ]),
            meaning: "Errors by the side that caused them; sums of other families",
            advice:
                "See the side's own families and the log; node means that a limit was reached "
                + "here."),
        MetricFamily(
            "nuthatch_heads_refused_total", .counter, "answers", by: "source",
            [(.headsRefusedFromPeers, "peer"), (.headsRefusedOnDisk, "disk")],
            meaning: "Responses from peers or from disk refused because their heads are invalid",
            advice:
                "The log has the source and the reason; a member or a disk may be under "
                + "foreign control."),
    ]

    private static let clientErrors: [Metric] = [
        .requestsMalformed, .responsesClientClosed, .timeoutsHead, .timeoutsBody, .timeoutsSend,
        .handshakesFailed, .timeoutsHandshake,
    ]

    private static let peerErrors: [Metric] = [
        .peerHandshakesFailed, .peerFaults, .peerRequestsFailed, .headsRefusedFromPeers,
    ]

    /// Failures of contacted origins, without rejections by the allow list, limits and the circuit
    /// breaker.
    private static let originErrors: [Metric] = [
        .originFailuresName, .originFailuresConnect, .originFailuresTLS, .originFailuresTimeout,
        .originFailuresBroken, .originFailuresProtocol, .originFailuresTooLarge,
        .originFailuresRedirects, .originResponsesServerError,
    ]

    private static let diskErrors: [Metric] = [.diskFailures, .diskRecordsLost]

    private static let nodeErrors: [Metric] = [
        .connectionsRefused, .handshakesRefused, .refusedFetches, .refusedShare, .refusedWaiters,
        .refusedWaitTime, .refusedMemory, .refusedQueue, .refusedCircuit,
    ]
}
