extension AdminOperation {
    /// All operations, each once; no two share both path and method.
    package static let all =
        publicOperations + nodeOperations + entryOperations + clusterOperations + purgeOperations
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
            responses: [Response(200, "A page for browsers", "text/html", JSONSchema.string)]),
        AdminOperation(
            .getHealth, "GET", "/healthz", for: nil, "Whether the process answers",
            responses: [
                Response(
                    200, "It does",
                    JSONSchema.object(.required("status", JSONSchema.enumeration(["ok"]))))
            ]),
        AdminOperation(
            .getReadiness, "GET", "/readyz", for: nil, "Whether requests should be sent here",
            parameters: [
                .query(
                    "unfenced", .choice(["false", "true"]),
                    "Whether 200 says besides that the next node may be stopped: this one is "
                        + "counted, and proven to know every purge")
            ],
            responses: [
                Response(200, "They should", HealthDocument.schema),
                Response(503, "They should go elsewhere", HealthDocument.schema),
            ]),
        AdminOperation(
            .getOpenAPI, "GET", "/admin/v1/openapi.json", for: nil,
            "This description of the admin port",
            responses: [Response(200, "The description", ["type": "object"])]),
    ]

    private static let entryOperations = [
        AdminOperation(
            .listHotEntries, "GET", "/admin/v1/hot", for: .read,
            "What is asked for most, of what memory holds",
            parameters: [.query("limit", .number(1...100), "How many; 12 if not said")],
            responses: [Response(200, "The hottest first", DocumentList<HotEntryDocument>.schema)]),
        AdminOperation(
            .getEntry, "GET", "/admin/v1/entry", for: .read,
            "What the node holds under a URL, and what it would do with it",
            parameters: [url],
            responses: [
                Response(200, "All that is held", EntryDocument.schema),
                Response(
                    404, "Nothing of it is held here", OpenAPI.problemType,
                    OpenAPI.problem(with: .optional("owners", JSONSchema.list(of: JSONSchema.id)))),
            ]),
        AdminOperation(
            .getEntryBody, "GET", "/admin/v1/entry/body", for: .read,
            "The stored body, whatever it is good for; the origin is not asked",
            parameters: [
                url, .query("key", .text(bytesMax: 16_384), "The first variant that has this key"),
                .query("variant", .text(bytesMax: 32), "The variant that /admin/v1/entry calls so"),
            ],
            responses: [
                Response(200, "The body, with its own type", "*/*", JSONSchema.string),
                Response(problem: 404, "Nothing of it is held here, or it has more than 16 MiB"),
            ]),
    ]

    private static let url = AdminParameter.query(
        "url", .text(bytesMax: 8_192), "The client's URL, or the origin's", isRequired: true)

    private static let nodeOperations = [
        AdminOperation(
            .getMetrics, "GET", "/metrics", for: .read, "Every metric, for Prometheus",
            responses: [
                Response(
                    200, "The metrics, as Accept asks for them", MetricsFormat.text.mediaType,
                    otherTypes: [MetricsFormat.openMetrics.mediaType], JSONSchema.string)
            ]),
        AdminOperation(
            .getStatus, "GET", "/admin/v1/status", for: .read, "How things stand with the node",
            responses: [Response(200, "Its status", StatusDocument.schema)]),
        AdminOperation(
            .getStatistics, "GET", "/admin/v1/statistics", for: .read,
            "What was counted since the start",
            responses: [Response(200, "The figures", StatisticsDocument.schema)]),
        AdminOperation(
            .watchStatistics, "GET", "/admin/v1/events", for: .read,
            "The same again and again, as server-sent events",
            parameters: [
                .query("interval_ms", .number(250...60_000), "How often; each second if not said")
            ],
            responses: [
                Response(200, "Events named statistics", "text/event-stream", JSONSchema.string)
            ]),
        AdminOperation(
            .listOrigins, "GET", "/admin/v1/origins", for: .read,
            "How things stand with each origin",
            responses: [Response(200, "The origins", DocumentList<OriginDocument>.schema)]),
        AdminOperation(
            .getConfiguration, "GET", "/admin/v1/configuration", for: .read,
            "The settings that hold, and where each comes from",
            responses: [Response(200, "The settings", ConfigurationDocument.schema)]),
        AdminOperation(
            .getLogLevel, "GET", "/admin/v1/log-level", for: .read,
            "The least severe message that is logged",
            responses: [Response(200, "The level", LogLevelDocument.schema)]),
        AdminOperation(
            .setLogLevel, "PUT", "/admin/v1/log-level", for: .admin,
            "Log from another level on, until the next SIGHUP or start",
            body: RequestBody(
                schema: LogLevelDocument.schema, bytesMax: LogLevelDocument.bodyBytesMax),
            responses: [
                Response(200, "The level that holds now", LogLevelDocument.schema),
                Response(problem: 422, "The body says no level"),
            ]),
        AdminOperation(
            .getSupportSnapshot, "GET", "/admin/v1/support", for: .admin,
            "All of this at once, for whoever has to find out what is wrong",
            responses: [Response(200, "The documents of one moment", SupportDocument.schema)]),
        AdminOperation(
            .drain, "POST", "/admin/v1/drain", for: .admin,
            "Take the node off the ring and hand over what it owns; it goes on to run",
            parameters: [
                .query("stop", .choice(["false", "true"]), "Whether it stops once that is done")
            ],
            responses: [Response(202, "It begins", OperationStatusDocument.schema)]),
        AdminOperation(
            .undrain, "POST", "/admin/v1/undrain", for: .admin,
            "Put a drained node back on the ring",
            responses: [
                Response(202, "It begins", OperationStatusDocument.schema),
                Response(problem: 409, "The node is stopping"),
            ]),
    ]

    private static let clusterOperations = [
        AdminOperation(
            .listMembers, "GET", "/admin/v1/members", for: .read,
            "Who is in the cluster, as this node believes",
            responses: [Response(200, "The members", DocumentList<MemberDocument>.schema)]),
        AdminOperation(
            .forgetMembers, "POST", "/admin/v1/members/{nodes}/forget", for: .admin,
            "Count members no longer that will not come back",
            parameters: [.path("nodes", .nodes, "The members' ids, with commas between them")],
            responses: [
                Response(202, "It begins", OperationStatusDocument.schema),
                Response(problem: 404, "There is no member of one of these ids"),
                Response(problem: 409, "They are counted as before"),
            ]),
        AdminOperation(
            .bootstrap, "POST", "/admin/v1/members/bootstrap", for: .admin,
            "Open a cluster with this node, which has found none",
            responses: [
                Response(202, "It begins", OperationStatusDocument.schema),
                Response(problem: 409, "The node is in a cluster, or in none by its settings"),
            ]),
        AdminOperation(
            .recover, "POST", "/admin/v1/members/recover", for: .admin,
            "Begin the count of members anew with this node, which stays fenced",
            responses: [
                Response(202, "It begins", OperationStatusDocument.schema),
                Response(problem: 409, "The node is proven current, or follows no count"),
            ]),
        AdminOperation(
            .getRing, "GET", "/admin/v1/ring", for: .read, "Who owns how much",
            responses: [Response(200, "The ring", RingDocument.schema)]),
    ]

    private static let purgeOperations = [
        AdminOperation(
            .listPurges, "GET", "/admin/v1/purges", for: .read,
            "The receipts of the last purges, or that of the purge with an id",
            parameters: [
                .query("id", .text(bytesMax: PurgeRequest.idBytesMax), "A client's id"),
                .query("limit", .number(1...100), "How many receipts; 20 if not said"),
            ],
            responses: [
                Response(
                    200, "Receipts, the newest first; with id the one receipt",
                    JSONSchema.anyOf(DocumentList<ReceiptDocument>.schema, ReceiptDocument.schema)),
                Response(problem: 404, "There is no receipt of this id"),
            ]),
        AdminOperation(
            .issuePurge, "POST", "/admin/v1/purges", for: .purge, "Purge, and get the receipt",
            parameters: PurgeOptions.parameters,
            body: RequestBody(schema: PurgeRequest.schema, bytesMax: PurgeRequest.bodyBytesMax),
            responses: [
                Response(200, "All have confirmed", ReceiptDocument.schema),
                Response(202, "Somebody has not confirmed yet", ReceiptDocument.schema),
                Response(problem: 409, "An earlier purge with this id is another one"),
                Response(problem: 422, "A key, a value or a target is not allowed"),
                Response(problem: 503, "Too much waits for the disk"),
            ]),
        AdminOperation(
            .getReceipt, "GET", "/admin/v1/purges/{receipt}", for: .read,
            "How far a purge has come",
            parameters: [
                .path("receipt", .receipt, "Its name, as the answer to the purge says")
            ],
            responses: [
                Response(200, "The receipt", ReceiptDocument.schema),
                Response(problem: 404, "The log does not hold it"),
            ]),
    ]

    private static let prefetchName = AdminParameter.path(
        "prefetch", .text(bytesMax: 64), "Its name, as the answer that began it says")

    private static let prefetchOperations = [
        AdminOperation(
            .listPrefetches, "GET", "/admin/v1/prefetches", for: .read,
            "The prefetches that run, and the last that are over",
            responses: [Response(200, "The newest first", DocumentList<PrefetchDocument>.schema)]),
        AdminOperation(
            .beginPrefetch, "POST", "/admin/v1/prefetches", for: .purge,
            "Fetch images before clients ask for them",
            body: RequestBody(
                schema: PrefetchRequest.schema, bytesMax: PrefetchRequest.bodyBytesMax),
            responses: [
                Response(202, "It begins", PrefetchDocument.schema),
                Response(problem: 409, "The node is stopping"),
                Response(problem: 422, "A key or a value is not allowed"),
                Response(problem: 503, "As many run as may"),
            ]),
        AdminOperation(
            .getPrefetch, "GET", "/admin/v1/prefetches/{prefetch}", for: .read,
            "How far a prefetch has come", parameters: [prefetchName],
            responses: [
                Response(200, "Its document", PrefetchDocument.schema),
                Response(problem: 404, "There is no prefetch of this name"),
            ]),
        AdminOperation(
            .cancelPrefetch, "DELETE", "/admin/v1/prefetches/{prefetch}", for: .purge,
            "Ask for nothing more of a prefetch", parameters: [prefetchName],
            responses: [
                Response(202, "What is under way ends", PrefetchDocument.schema),
                Response(problem: 404, "There is no prefetch of this name"),
            ]),
    ]
}
