/// The metrics of fetches from origins.
package enum OriginMetrics {
    /// The failed fetches by reason, as the family `nuthatch_origin_failures_total`.
    package static let failures = MetricFamily(
        "nuthatch_origin_failures_total", .counter, "fetches", by: "reason",
        [
            (.originFailuresNotAllowed, "not_allowed"), (.originFailuresName, "name"),
            (.originFailuresConnect, "connect"), (.originFailuresTLS, "tls"),
            (.originFailuresTimeout, "timeout"), (.originFailuresBroken, "broken"),
            (.originFailuresProtocol, "protocol"), (.originFailuresTooLarge, "too_large"),
            (.originFailuresRedirects, "redirects"), (.originFailuresCircuit, "circuit"),
            (.originFailuresLimit, "limit"), (.originFailuresStopping, "stopping"),
        ],
        meaning:
            "Failed fetches from origins, by reason; circuit and limit did not contact "
            + "the origin",
        advice:
            "circuit: see /admin/v1/origins; limit: see origin-connections and "
            + "origin-queue-limit.")

    /// The requests refused by limit, as the family `nuthatch_refused_total`.
    package static let refusals = MetricFamily(
        "nuthatch_refused_total", .counter, "requests", by: "reason",
        [
            (.refusedFetches, "fills"), (.refusedShare, "share"), (.refusedWaiters, "waiters"),
            (.refusedWaitTime, "wait_time"), (.refusedMemory, "memory"),
            (.refusedQueue, "origin_queue"),
            (.refusedCircuit, "origin_circuit"),
        ],
        meaning: "Requests answered with 503 because a limit was reached, by limit",
        advice:
            "Hits are still served; the reasons belong to the settings fills-limit, "
            + "waiters-limit, wait-timeout, memory-limit, origin-queue-limit and "
            + "origin-circuit-failures.")

    /// The families in the order in which they are exposed.
    static let families = [
        MetricFamily(
            "nuthatch_origin_fetches_started_total", .counter, "fetches", .originFetchesStarted,
            meaning: "Fetches from origins started, including revalidations",
            advice: "Far fewer than misses means that coalescing works."),
        MetricFamily(
            "nuthatch_origin_fetches_total", .counter, "fetches", by: "result",
            [
                (.originFetchesOK, "ok"), (.originFetchesFailed, "failed"),
                (.originFetchesAbandoned, "abandoned"),
            ],
            meaning:
                "Fetches from origins ended: complete, failed, or abandoned because no "
                + "request needed the rest",
            advice: "The log names the origin and the reason of each failure."),
        MetricFamily(
            "nuthatch_origin_answers_total", .counter, "answers", by: "status",
            [
                (.originResponsesSuccess, "2xx"), (.originResponsesRedirected, "3xx"),
                (.originResponsesNotModified, "304"), (.originResponsesClientError, "4xx"),
                (.originResponsesServerError, "5xx"),
            ],
            meaning: "Responses from origins by status; 304 is not counted in its class",
            advice: "Few 304 in spite of many stale entries: the origin sends no validators."),
        failures,
        MetricFamily(
            "nuthatch_origin_received_bytes_total", .counter, "bytes", .originReceivedBytes,
            meaning: "Body bytes received from origins",
            advice: "Compare with the sent bytes to see what the cache saves."),
        MetricFamily(
            "nuthatch_origin_ranges_total", .counter, "requests", by: "fetched",
            [
                (.originRangesPartial, "part"), (.originRangesSmall, "small"),
                (.originRangesRepeated, "again"), (.originRangesLimited, "limited"),
            ],
            meaning:
                "Range requests for responses that were not stored: fetched partially, "
                + "fetched in full because the body is small or was requested again, or not "
                + "fetched in full because of client-unread-limit",
            advice:
                "Many limited: clients request small parts of large bodies, or "
                + "client-unread-limit is low."),
        MetricFamily(
            "nuthatch_origin_unread_bytes_total", .counter, "bytes", .originUnreadBytes,
            meaning:
                "Bytes fetched from origins that the client did not request, or no longer "
                + "waited for",
            advice: "At most client-unread-limit per client and minute."),
        MetricFamily(
            "nuthatch_images_unfit_total", .counter, "images", by: "reason",
            [
                (.imagesTooLarge, "too_large"), (.imagesMislabelled, "mislabelled"),
                (.imagesUnreadable, "unreadable"), (.imagesCoded, "coded"),
            ],
            meaning:
                "Images refused because they exceed pixel-limit or are content-coded, "
                + "forwarded without storing because they are mislabelled, or stored although "
                + "their dimensions cannot be read",
            advice: "The log names all but the last kind; see pixel-limit and coded-images."),
        MetricFamily(
            "nuthatch_fills_in_flight", .gauge, "fetches", .fetchesInFlight,
            meaning: "Fetches from origins in progress",
            advice: "Near fills-limit, look for slow origins."),
        MetricFamily(
            "nuthatch_waiters", .gauge, "requests", .waiters,
            meaning: "Requests waiting for a fetch in progress",
            advice: "Near waiters-limit, look for slow origins."),
        MetricFamily(
            "nuthatch_origin_redirects_total", .counter, "redirects", .originRedirects,
            meaning: "Redirects from origins that were followed",
            advice: "Each costs a request; use the final URL."),
        MetricFamily(
            "nuthatch_origin_connections", .gauge, "connections", .originConnections,
            meaning: "Connections to origins that are open or being opened, including idle ones",
            advice: "At most origin-connections per origin."),
        MetricFamily(
            "nuthatch_origin_connections_idle", .gauge, "connections", .originConnectionsIdle,
            meaning: "Idle connections to origins",
            advice: "origin-keepalive and origin-idle-connections limit their time and number."),
        MetricFamily(
            "nuthatch_origin_waiting", .gauge, "fetches", .originFetchesQueued,
            meaning: "Fetches waiting for a connection to their origin",
            advice: "If it stays above 0, an origin is too slow; see /admin/v1/origins."),
        MetricFamily(
            "nuthatch_origin_circuits_open", .gauge, "origins", .originCircuitsOpen,
            meaning: "Origins with an open circuit breaker",
            advice: "/admin/v1/origins names them."),
        MetricFamily(
            "nuthatch_origin_circuit_openings_total", .counter, "openings", .originCircuitOpenings,
            meaning: "Openings of origins' circuit breakers",
            advice: "The log names the origin and the number of failures."),
        MetricFamily(
            "nuthatch_origin_overruns_total", .counter, "connections", .originOverruns,
            meaning: "Connections closed because the origin sent more bytes than its response has",
            advice: "The log names the origin; each costs a connection, the responses are valid."),
        MetricFamily(
            "nuthatch_upgrades_total", .counter, "requests", by: "outcome",
            [(.upgrades, "switched"), (.upgradesRefused, "refused")],
            meaning: "Requests to switch protocols, such as to WebSocket, by outcome",
            advice:
                "refused: the protocol is not among those that the site's option upgrade "
                + "allows."),
        MetricFamily(
            "nuthatch_origin_names", .gauge, "names", .originNamesCached,
            meaning: "Host names with cached addresses",
            advice: "At most dns-names-limit."),
        refusals,
    ]
}
