extension MetricFamily {
    /// The families of fetches from origins.
    static let originFamilies = [
        MetricFamily(
            "nuthatch_origin_fetches_started_total", .counter, "fetches", .originFetchesStarted,
            meaning: "Fetches from origins begun, revalidations included",
            advice: "Far fewer than misses is what coalescing is for."),
        MetricFamily(
            "nuthatch_origin_fetches_total", .counter, "fetches", by: "result",
            [
                (.originFetchesOK, "ok"), (.originFetchesFailed, "failed"),
                (.originFetchesAbandoned, "abandoned"),
            ],
            meaning:
                "Fetches from origins ended: a whole answer came, or not, or nobody wanted "
                + "the rest",
            advice: "The log names origin and reason of each failure."),
        MetricFamily(
            "nuthatch_origin_answers_total", .counter, "answers", by: "status",
            [
                (.originResponsesSuccess, "2xx"), (.originResponsesRedirected, "3xx"),
                (.originResponsesNotModified, "304"), (.originResponsesClientError, "4xx"),
                (.originResponsesServerError, "5xx"),
            ],
            meaning: "Answers of origins by status; 304 is not counted in its class",
            advice: "Few 304 among many stale entries: the origin gives no validators."),
        MetricFamily(
            "nuthatch_origin_failures_total", .counter, "fetches", by: "reason",
            [
                (.originFailuresNotAllowed, "not_allowed"), (.originFailuresName, "name"),
                (.originFailuresConnect, "connect"), (.originFailuresTLS, "tls"),
                (.originFailuresTimeout, "timeout"), (.originFailuresBroken, "broken"),
                (.originFailuresProtocol, "protocol"), (.originFailuresTooLarge, "too_large"),
                (.originFailuresRedirects, "redirects"), (.originFailuresCircuit, "circuit"),
                (.originFailuresLimit, "limit"), (.originFailuresStopping, "stopping"),
            ],
            meaning: "Fetches from origins that failed, by why; circuit and limit asked nobody",
            advice: "circuit: /admin/v1/origins names it; limit: origin-connections and its queue."
        ),
        MetricFamily(
            "nuthatch_origin_received_bytes_total", .counter, "bytes", .originReceivedBytes,
            meaning: "Bytes of bodies received from origins",
            advice: "Compare with sent bytes for what the cache saves."),
        MetricFamily(
            "nuthatch_origin_ranges_total", .counter, "requests", by: "fetched",
            [
                (.originRangesPartial, "part"), (.originRangesSmall, "small"),
                (.originRangesRepeated, "again"), (.originRangesLimited, "limited"),
            ],
            meaning:
                "Ranges of what was not stored: fetched as a part, whole because it is small or "
                + "wanted again, or not whole because of client-unread-limit",
            advice: "Many limited: clients want little of much, or client-unread-limit is low."),
        MetricFamily(
            "nuthatch_origin_unread_bytes_total", .counter, "bytes", .originUnreadBytes,
            meaning: "Bytes fetched from origins for clients that wanted less, or had left",
            advice: "For one client at most client-unread-limit a minute."),
        MetricFamily(
            "nuthatch_images_unfit_total", .counter, "images", by: "reason",
            [
                (.imagesTooLarge, "too_large"), (.imagesMislabelled, "mislabelled"),
                (.imagesUnreadable, "unreadable"), (.imagesCoded, "coded"),
            ],
            meaning:
                "Images refused above pixel-limit or because they are coded, passed on and not "
                + "kept because they are mislabelled, or kept though their size cannot be read, "
                + "by why",
            advice: "The log names all but the last; see pixel-limit and coded-images."),
        MetricFamily(
            "nuthatch_fills_in_flight", .gauge, "fetches", .fetchesInFlight,
            meaning: "Fetches from origins that are running",
            advice: "Near fills-limit, look for slow origins."),
        MetricFamily(
            "nuthatch_waiters", .gauge, "requests", .waiters,
            meaning: "Requests that wait for a running fetch",
            advice: "Near waiters-limit, look for slow origins."),
        MetricFamily(
            "nuthatch_origin_redirects_total", .counter, "redirects", .originRedirects,
            meaning: "Redirects of origins that were followed",
            advice: "Each costs a request; ask for the URL where they end."),
        MetricFamily(
            "nuthatch_origin_connections", .gauge, "connections", .originConnections,
            meaning: "Connections to origins open or being opened, idle ones included",
            advice: "For one origin at most origin-connections."),
        MetricFamily(
            "nuthatch_origin_connections_idle", .gauge, "connections", .originConnectionsIdle,
            meaning: "Of these, those kept for a later fetch",
            advice: "origin-keepalive and origin-idle-connections say how long and how many."),
        MetricFamily(
            "nuthatch_origin_waiting", .gauge, "fetches", .originFetchesQueued,
            meaning: "Fetches that wait for a connection to their origin",
            advice: "If it stays above 0, an origin is too slow; see /admin/v1/origins."),
        MetricFamily(
            "nuthatch_origin_circuits_open", .gauge, "origins", .originCircuitsOpen,
            meaning: "Origins that are left alone because they failed again and again",
            advice: "/admin/v1/origins names them."),
        MetricFamily(
            "nuthatch_origin_circuit_openings_total", .counter, "openings", .originCircuitOpenings,
            meaning: "Times that an origin was left alone from then on",
            advice: "The log names origin and number of failures."),
        MetricFamily(
            "nuthatch_origin_overruns_total", .counter, "connections", .originOverruns,
            meaning: "Connections closed because an origin sent more than its answer on them",
            advice: "The log names the origin; each costs a connection, the answers are good."),
        MetricFamily(
            "nuthatch_upgrades_total", .counter, "requests", by: "outcome",
            [(.upgrades, "switched"), (.upgradesRefused, "refused")],
            meaning: "Requests for another protocol, such as WebSocket, by what became of them",
            advice: "Refused ones ask for what their site does not have in upgrade."),
        MetricFamily(
            "nuthatch_origin_names", .gauge, "names", .originNamesCached,
            meaning: "Names whose addresses are remembered",
            advice: "At most dns-names-limit."),
        MetricFamily(
            "nuthatch_refused_total", .counter, "requests", by: "reason",
            [
                (.refusedFetches, "fills"), (.refusedShare, "share"), (.refusedWaiters, "waiters"),
                (.refusedWaitTime, "wait_time"), (.refusedMemory, "memory"),
                (.refusedQueue, "origin_queue"),
                (.refusedCircuit, "origin_circuit"),
            ],
            meaning: "Requests answered with 503 because a limit was reached, by which one",
            advice: "Hits go on meanwhile; each reason is a setting: fills-limit, waiters-limit, "
                + "wait-timeout, memory-limit, origin-queue-limit, origin-circuit-failures."),
    ]
}
