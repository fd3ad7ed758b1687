extension MetricFamily {
    static let requestFamilies = [
        MetricFamily(
            "nuthatch_requests_total", .counter, "requests", by: "cache",
            [
                (.requestsHit, "hit"), (.requestsHitOnDisk, "disk"),
                (.requestsRevalidated, "revalidated"),
                (.requestsMissed, "miss"), (.requestsFromPeer, "peer"),
                (.requestsCollapsed, "collapsed"), (.requestsStale, "stale"),
                (.requestsBypassed, "passed"), (.requestsGenerated, "none"),
            ],
            meaning: "Requests by how the cache took part in the answer",
            advice: "If misses dominate, compare evictions and the origins' freshness lifetimes."),
        MetricFamily(
            "nuthatch_request_duration_seconds", .histogram, "seconds", divisor: 1_000_000_000,
            .outcomes(.duration),
            meaning:
                "Time from a request's head to the end of its answer, of whole answers, by how the "
                + "cache took part",
            advice:
                "Slow hits: clients read slowly, or the node has too little CPU; else see origins."
        ),
        MetricFamily(
            "nuthatch_body_bytes_total", .counter, "bytes", .outcomes(.bodyBytes),
            meaning: "Bytes of bodies of whole answers, by how the cache took part",
            advice:
                "All but miss, passed and none, by all but passed and none, is the byte hit "
                + "ratio."),
        MetricFamily(
            "nuthatch_answers_total", .counter, "answers", by: "status",
            [
                (.responsesSuccess, "2xx"), (.responsesPartial, "206"),
                (.responsesRedirected, "3xx"), (.responsesNotModified, "304"),
                (.responsesClientError, "4xx"), (.responsesServerError, "5xx"),
            ],
            meaning: "Answers by status; 206 and 304 are not counted in their classes",
            advice: "5xx: see origin fetches, timeouts, and the limits of fills and waiters."),
        MetricFamily(
            "nuthatch_answers_unfinished_total", .counter, "answers", by: "side",
            [(.responsesClientClosed, "client"), (.responsesAborted, "node")],
            meaning:
                "Answers not begun or not brought to their end, because the client went or the "
                + "rest did not come",
            advice: "node: an origin or a peer breaks off; the log names the origin."),
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

    static let connectionFamilies = [
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
            meaning: "Connections of clients closed at once because of connections-limit, or of "
                + "connections-per-client",
            advice: "Raise the descriptor limit (ulimit -n), or the setting that is too low."),
        MetricFamily(
            "nuthatch_connections_yielded_total", .counter, "connections", .connectionsEvicted,
            meaning: "Idle connections of clients closed to make room for new ones",
            advice: "As connections_refused: all places are taken, though not by requests."),
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

    static let memoryFamilies = [
        MetricFamily(
            "nuthatch_evictions_total", .counter, "entries", by: "reason",
            [
                (.evictionsForCapacity, "room"), (.evictionsForEntryLimit, "entries"),
                (.evictionsForShare, "share"), (.evictionsForLoweredLimit, "limit"),
                (.evictionsForPressure, "pressure"), (.evictionsPurged, "purged"),
            ],
            meaning:
                "Entries removed from memory: for room, for a place among memory-entries, for the "
                + "share of their site, because a limit was lowered, by you or for want of memory, "
                + "or because they were found to be purged",
            advice: "Many for room with many misses ask for a larger memory-limit."),
        MetricFamily(
            "nuthatch_variants_dropped_total", .counter, "entries", .variantsDropped,
            meaning: "Stored answers of sites that went for others of the same URL",
            advice: "A field in Vary that has a value for everybody; or raise variants-limit."),
        MetricFamily(
            "nuthatch_memory_used_bytes", .gauge, "bytes", .memoryUsedBytes,
            meaning: "Memory taken of memory-limit; nuthatch_memory_part_bytes says by what",
            advice: "At the limit after a while is ordinary."),
        MetricFamily(
            "nuthatch_memory_limit_bytes", .gauge, "bytes", .memoryLimitBytes,
            meaning: "What memory-limit says",
            advice: "Change it with memory-limit."),
        MetricFamily(
            "nuthatch_memory_part_bytes", .gauge, "bytes", by: "part",
            [
                (.memoryBodyBytes, "bodies"), (.memoryOverheadBytes, "overhead"),
                (.memoryFetchBytes, "fetches"), (.memoryPinnedBytes, "pinned"),
            ],
            meaning:
                "Parts of the memory used: bodies of entries, their keys, heads and bookkeeping, "
                + "bodies on their way, and what clients are still sent of entries that are gone",
            advice: "Much pinned means many slow clients; shorten send-timeout."),
        MetricFamily(
            "nuthatch_memory_entries", .gauge, "entries", .memoryEntries,
            meaning: "Entries in memory",
            advice: "Used bytes by entries is the mean size of an image."),
    ]
}

extension MetricFamily {
    /// The families with series for each site.
    static let siteFamilies = [
        MetricFamily(
            "nuthatch_site_requests_total", .counter, "requests",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { Series(metric: .requests($0), label: $0.label) }),
            meaning: "Requests for a site by how the cache took part in the answer",
            advice: "Many that passed: look at Cache-Control, Set-Cookie and methods of the site."),
        MetricFamily(
            "nuthatch_site_body_bytes_total", .counter, "bytes",
            .sites(
                label: "cache",
                CacheOutcome.allCases.map { Series(metric: .bodyBytes($0), label: $0.label) }),
            meaning: "Bytes of bodies of whole answers of a site, by how the cache took part",
            advice: "Few bytes from memory with many hits there: the large answers are elsewhere."),
        MetricFamily(
            "nuthatch_site_origin_received_bytes_total", .counter, "bytes",
            .sites(label: "", [Series(metric: .originBytes, label: "")]),
            meaning: "Bytes of bodies received from a site's origin",
            advice: "Growth without misses is what is passed and not stored."),
    ]
}

extension MetricFamily {
    /// The families of memory pressure.
    static let pressureFamilies = [
        MetricFamily(
            "nuthatch_memory_held_limit_bytes", .gauge, "bytes", .memoryEffectiveLimitBytes,
            meaning: "What of memory-limit is held now; less than that under memory pressure",
            advice: "If it stays below the limit, lower memory-limit or give the node memory."),
        MetricFamily(
            "nuthatch_memory_yields", .gauge, "nodes", .memoryUnderPressure,
            meaning: "Whether less than memory-limit is held: 1, or 0",
            advice: "The log says whose memory is short."),
        MetricFamily(
            "nuthatch_memory_headroom_bytes", .gauge, "bytes", .memoryHeadroomBytes,
            meaning:
                "What the nearest limit of container or machine leaves, page cache not counted",
            advice: "At 0 the kernel kills; an eighth of the limit is kept free where possible."),
        MetricFamily(
            "nuthatch_memory_stalled_ratio", .gauge, "ratio", divisor: 1_000,
            .memoryStalledPermille,
            meaning: "Part of the last 10 s in which everything waited for memory (PSI, full)",
            advice: "From 0.1 on memory is given up; the machine swaps or has no page cache left."),
        MetricFamily(
            "nuthatch_memory_shrinks_total", .counter, "shrinks", by: "reason",
            [(.memoryShrinksForHeadroom, "room"), (.memoryShrinksForStalls, "stall")],
            meaning: "Times that the limit held was lowered, by what asked for it",
            advice: "A steady rate means that something else takes memory again and again."),
    ]
}

extension MetricFamily {
    /// The families of errors by the side that caused them.
    static let errorFamilies = [
        MetricFamily(
            "nuthatch_errors_total", .counter, "errors",
            .sums(
                label: "side",
                [
                    Sum(metrics: clientErrors, label: "client"),
                    Sum(metrics: peerErrors, label: "peer"),
                    Sum(metrics: originErrors, label: "origin"),
                    Sum(metrics: diskErrors, label: "disk"),
                    Sum(metrics: nodeErrors, label: "node"),
                ]),
            meaning: "What went wrong by whose side it was, as other families have it one by one",
            advice: "Look at the side's own families, and at the log; node is a limit reached here."
        ),
        MetricFamily(
            "nuthatch_heads_refused_total", .counter, "answers", by: "source",
            [(.headsRefusedFromPeers, "peer"), (.headsRefusedOnDisk, "disk")],
            meaning: "Answers of peers, and on disk, whose heads no client may be given",
            advice: "The log says whose and why: a member, or a disk, that somebody has in hand."),
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
