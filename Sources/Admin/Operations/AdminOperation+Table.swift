extension AdminOperation {
    /// All operations, each once; no two share both path and method.
    package static let all =
        publicOperations + conditionOperations + nodeOperations + entryOperations
        + clusterOperations + purgeOperations
        + prefetchOperations

    /// The largest request body that any operation accepts, in bytes.
    package static let bodyBytesMax = all.compactMap { $0.body?.bytesMax }.max() ?? 0

    /// Returns the operation with this id.
    package static func operation(_ name: ID) -> AdminOperation {
        guard let row = all.first(where: { $0.id == name }) else {
            preconditionFailure("\(name) is not in the table")
        }
        return row
    }

    private static let publicOperations = [
        AdminOperation(
            .showDashboard, "GET", "/", for: nil, "The dashboard",
            responses: [Response(200, "A page for browsers", "text/html", .string)]),
        AdminOperation(
            .getHealth, "GET", "/healthz", for: nil, "Check that the process responds",
            responses: [
                Response(
                    200, "The process responds",
                    .object(.required("status", .enumeration(["ok"]))))
            ]),
        AdminOperation(
            .getReadiness, "GET", "/readyz", for: nil,
            "Check whether the node should receive requests",
            parameters: [
                .query(
                    "unfenced", .choice(["false", "true"]),
                    "Respond with 200 only if the node is also a voter and not fenced, so that the "
                        + "next node of a rolling restart may be stopped")
            ],
            responses: [
                Response(200, "The node should receive requests", HealthDocument.schema),
                Response(503, "Requests should go to other nodes", HealthDocument.schema),
            ]),
        AdminOperation(
            .getOpenAPI, "GET", "/admin/v1/openapi.json", for: nil,
            "The OpenAPI description of the admin port",
            responses: [Response(200, "The description", .anyObject)]),
    ]

    private static let conditionOperations = [
        AdminOperation(
            .getConditions, "GET", "/admin/v1/conditions", for: .read,
            "The faults that the node knows of, in words, the worst first",
            responses: [Response(200, "The conditions", ConditionsDocument.schema)]),
        AdminOperation(
            .getHistory, "GET", "/admin/v1/history", for: .read,
            "The traffic of the last hour at intervals of 10 s",
            responses: [Response(200, "The history", HistoryDocument.schema)]),
    ]

    private static let entryOperations = [
        AdminOperation(
            .listHotEntries, "GET", "/admin/v1/hot", for: .read,
            "The most requested entries in memory",
            parameters: [
                .query("limit", .number(1...100), "The maximum number of entries; 12 by default")
            ],
            responses: [
                Response(
                    200, "The entries, the most requested first",
                    DocumentList<HotEntryDocument>.schema)
            ]),
        AdminOperation(
            .getEntry, "GET", "/admin/v1/entry", for: .read,
            "The stored variants of a URL, and how the node would serve them",
            parameters: [url],
            responses: [
                Response(200, "The stored variants", EntryDocument.schema),
                Response(
                    404, "Nothing is stored under the URL", OpenAPI.problemType,
                    OpenAPI.problem(with: .optional("owners", .list(of: .id)))),
            ]),
        AdminOperation(
            .getEntryBody, "GET", "/admin/v1/entry/body", for: .read,
            "The stored body, valid or not; the origin is not contacted",
            parameters: [
                url, .query("key", .text(bytesMax: 16_384), "The key that the variant must have"),
                .query(
                    "variant", .text(bytesMax: 32), "The name of the variant, as in /admin/v1/entry"
                ),
            ],
            responses: [
                Response(200, "The body, with its own media type", "*/*", .string),
                Response(problem: 404, "No such variant is stored, or it is larger than 16 MiB"),
            ]),
    ]

    private static let url = AdminParameter.query(
        "url", .text(bytesMax: 8_192),
        "The URL, as a client requests it or as the origin is asked for it", isRequired: true)

    private static let started = Response(
        202, "The operation has started", OperationStatusDocument.schema)

    private static let nodeOperations = [
        AdminOperation(
            .getMetrics, "GET", "/metrics", for: .read, "All metrics, for Prometheus",
            responses: [
                Response(
                    200, "The metrics, in the format that Accept selects",
                    MetricsFormat.text.mediaType,
                    otherTypes: [MetricsFormat.openMetrics.mediaType], .string)
            ]),
        AdminOperation(
            .getStatus, "GET", "/admin/v1/status", for: .read, "The state of the node",
            responses: [Response(200, "The state", StatusDocument.schema)]),
        AdminOperation(
            .getStatistics, "GET", "/admin/v1/statistics", for: .read,
            "The counters since the start",
            responses: [Response(200, "The counters", StatisticsDocument.schema)]),
        AdminOperation(
            .watchStatistics, "GET", "/admin/v1/events", for: .read,
            "The statistics at regular intervals, as server-sent events",
            parameters: [
                .query(
                    "interval_ms", .number(250...60_000),
                    "The interval in milliseconds; 1000 by default")
            ],
            responses: [
                Response(200, "Events named statistics", "text/event-stream", .string)
            ]),
        AdminOperation(
            .listOrigins, "GET", "/admin/v1/origins", for: .read,
            "The connections, the circuit breaker and the failures of each origin",
            responses: [Response(200, "The origins", DocumentList<OriginDocument>.schema)]),
        AdminOperation(
            .listSites, "GET", "/admin/v1/sites", for: .read,
            "The traffic and the health of each site",
            responses: [Response(200, "The sites", DocumentList<SiteDocument>.schema)]),
        AdminOperation(
            .listCertificates, "GET", "/admin/v1/certificates", for: .read,
            "The certificates that the node has loaded, and when they expire",
            responses: [
                Response(200, "The certificates", DocumentList<CertificateDocument>.schema)
            ]),
        AdminOperation(
            .getConfiguration, "GET", "/admin/v1/configuration", for: .read,
            "The settings in force and their sources",
            responses: [Response(200, "The settings", ConfigurationDocument.schema)]),
        AdminOperation(
            .getLogLevel, "GET", "/admin/v1/log-level", for: .read,
            "The least severe message that is logged",
            responses: [Response(200, "The level", LogLevelDocument.schema)]),
        AdminOperation(
            .setLogLevel, "PUT", "/admin/v1/log-level", for: .admin,
            "Change the log level until the next reload or restart",
            body: RequestBody(
                schema: LogLevelDocument.schema, bytesMax: LogLevelDocument.bodyBytesMax),
            responses: [
                Response(200, "The level in force", LogLevelDocument.schema),
                Response(problem: 422, "The body is not a valid level"),
            ]),
        AdminOperation(
            .getSupportSnapshot, "GET", "/admin/v1/support", for: .admin,
            "All documents at once, for diagnosis",
            responses: [Response(200, "The documents at one time", SupportDocument.schema)]),
        AdminOperation(
            .drain, "POST", "/admin/v1/drain", for: .admin,
            "Remove the node from the ring and hand off its entries; it keeps running",
            parameters: [
                .query("stop", .choice(["false", "true"]), "Whether the node stops afterwards")
            ],
            responses: [started]),
        AdminOperation(
            .undrain, "POST", "/admin/v1/undrain", for: .admin,
            "Put a drained node back on the ring",
            responses: [
                started,
                Response(problem: 409, "The node is stopping"),
            ]),
    ]

    private static let clusterOperations = [
        AdminOperation(
            .listMembers, "GET", "/admin/v1/members", for: .read,
            "The members of the cluster, as this node sees them",
            responses: [Response(200, "The members", DocumentList<MemberDocument>.schema)]),
        AdminOperation(
            .forgetMembers, "POST", "/admin/v1/members/{nodes}/forget", for: .admin,
            "Remove members that will not return from the voter set",
            parameters: [
                .path("nodes", .nodes, "The node ids of the members, separated by commas")
            ],
            responses: [
                started,
                Response(problem: 404, "One of the ids is not that of a member"),
                Response(problem: 409, "The voter set is unchanged"),
            ]),
        AdminOperation(
            .bootstrap, "POST", "/admin/v1/members/bootstrap", for: .admin,
            "Form a new cluster with this node, which has found none",
            responses: [
                started,
                Response(
                    problem: 409, "The node is in a cluster already, or not configured for one"),
            ]),
        AdminOperation(
            .recover, "POST", "/admin/v1/members/recover", for: .admin,
            "Begin a new voter set with this node as its only member",
            responses: [
                started,
                Response(problem: 409, "The node is not fenced, or has no voter set"),
            ]),
        AdminOperation(
            .getRing, "GET", "/admin/v1/ring", for: .read, "The shares of keys that the nodes own",
            responses: [Response(200, "The ring", RingDocument.schema)]),
    ]

    private static let purgeOperations = [
        AdminOperation(
            .listPurges, "GET", "/admin/v1/purges", for: .read,
            "The receipts of the latest purges, or the receipt of the purge with an id",
            parameters: [
                .query("id", .text(bytesMax: PurgeRequest.idBytesMax), "The id of a purge"),
                .query("limit", .number(1...100), "The maximum number of receipts; 20 by default"),
            ],
            responses: [
                Response(
                    200, "The receipts, the newest first; with id, a single receipt",
                    .anyOf(DocumentList<ReceiptDocument>.schema, ReceiptDocument.schema)),
                Response(problem: 404, "No receipt has this id"),
            ]),
        AdminOperation(
            .issuePurge, "POST", "/admin/v1/purges", for: .purge,
            "Purge entries, and return the receipt",
            parameters: PurgeOptions.parameters,
            body: RequestBody(schema: PurgeRequest.schema, bytesMax: PurgeRequest.bodyBytesMax),
            responses: [
                Response(200, "All nodes that can serve have confirmed", ReceiptDocument.schema),
                Response(202, "A node has not confirmed yet", ReceiptDocument.schema),
                Response(problem: 409, "An earlier purge with this id differs"),
                Response(problem: 422, "A key, a value or a target is invalid"),
                Response(problem: 503, "Too many purges wait for the disk"),
            ]),
        AdminOperation(
            .getReceipt, "GET", "/admin/v1/purges/{receipt}", for: .read,
            "The progress of a purge",
            parameters: [
                .path(
                    "receipt", .receipt, "The name of the receipt, from the response to the purge")
            ],
            responses: [
                Response(200, "The receipt", ReceiptDocument.schema),
                Response(problem: 404, "The invalidation log does not hold the receipt"),
            ]),
    ]

    private static let prefetchName = AdminParameter.path(
        "prefetch", .text(bytesMax: 64), "The name of the job, from the response that started it")

    private static let prefetchOperations = [
        AdminOperation(
            .listPrefetches, "GET", "/admin/v1/prefetches", for: .read,
            "The running prefetch jobs and the last finished ones",
            responses: [
                Response(200, "The jobs, the newest first", DocumentList<PrefetchDocument>.schema)
            ]),
        AdminOperation(
            .beginPrefetch, "POST", "/admin/v1/prefetches", for: .purge,
            "Fetch images before clients request them",
            body: RequestBody(
                schema: PrefetchRequest.schema, bytesMax: PrefetchRequest.bodyBytesMax),
            responses: [
                Response(202, "The operation has started", PrefetchDocument.schema),
                Response(problem: 409, "The node is stopping"),
                Response(problem: 422, "A key or a value is invalid"),
                Response(problem: 503, "The maximum number of jobs is running"),
            ]),
        AdminOperation(
            .getPrefetch, "GET", "/admin/v1/prefetches/{prefetch}", for: .read,
            "The progress of a prefetch job", parameters: [prefetchName],
            responses: [
                Response(200, "The progress", PrefetchDocument.schema),
                Response(problem: 404, "No job has this name"),
            ]),
        AdminOperation(
            .cancelPrefetch, "DELETE", "/admin/v1/prefetches/{prefetch}", for: .purge,
            "Cancel a prefetch job", parameters: [prefetchName],
            responses: [
                Response(
                    202, "The job is cancelled; running requests finish", PrefetchDocument.schema),
                Response(problem: 404, "No job has this name"),
            ]),
    ]
}
