extension AdminOperation {
    /// Every operation once; each method at most once for a path.
    package static let table =
        publicRows + nodeRows + entryRows + clusterRows + purgeRows + prefetchRows

    /// Bytes of the largest body that any of them takes.
    package static let bodyBytesMax = table.compactMap { $0.body?.bytesMax }.max() ?? 0

    /// The operation's row.
    package static func row(_ name: Name) -> AdminOperation {
        guard let row = table.first(where: { $0.name == name }) else {
            preconditionFailure("\(name) is not in the table")
        }
        return row
    }

    private static let publicRows = [
        AdminOperation(
            .showDashboard, "GET", "/", for: nil, "The dashboard",
            answers: [Answer(200, "A page for browsers", "text/html", Shape.string)]),
        AdminOperation(
            .getHealth, "GET", "/healthz", for: nil, "Whether the process answers",
            answers: [Answer(200, "It does", Shape.object(.has("status", Shape.choice(["ok"]))))]),
        AdminOperation(
            .getReadiness, "GET", "/readyz", for: nil, "Whether requests should be sent here",
            taking: [
                .query(
                    "unfenced", .choice(["false", "true"]),
                    "Whether 200 says besides that the next node may be stopped: this one is "
                        + "counted, and proven to know every purge")
            ],
            answers: [
                Answer(200, "They should", HealthDocument.shape),
                Answer(503, "They should go elsewhere", HealthDocument.shape),
            ]),
        AdminOperation(
            .getOpenAPI, "GET", "/admin/v1/openapi.json", for: nil,
            "This description of the admin port",
            answers: [Answer(200, "The description", ["type": "object"])]),
    ]

    private static let entryRows = [
        AdminOperation(
            .listHotEntries, "GET", "/admin/v1/hot", for: .read,
            "What is asked for most, of what memory holds",
            taking: [.query("limit", .number(1...100), "How many; 12 if not said")],
            answers: [Answer(200, "The hottest first", HotDocument.shape)]),
        AdminOperation(
            .getEntry, "GET", "/admin/v1/entry", for: .read,
            "What the node holds under a URL, and what it would do with it",
            taking: [url],
            answers: [
                Answer(200, "All that is held", EntryDocument.shape),
                Answer(
                    404, "Nothing of it is held here", OpenAPI.problemType,
                    OpenAPI.problem(with: .may("owners", Shape.list(of: Shape.id)))),
            ]),
        AdminOperation(
            .getEntryBody, "GET", "/admin/v1/entry/body", for: .read,
            "The stored body, whatever it is good for; the origin is not asked",
            taking: [
                url, .query("key", .text(bytesMax: 16_384), "The first variant that has this key"),
                .query("variant", .text(bytesMax: 32), "The variant that /admin/v1/entry calls so"),
            ],
            answers: [
                Answer(200, "The body, with its own type", "*/*", Shape.string),
                Answer(problem: 404, "Nothing of it is held here, or it has more than 16 MiB"),
            ]),
    ]

    private static let url = AdminParameter.query(
        "url", .text(bytesMax: 8_192), "The client's URL, or the origin's", isRequired: true)

    private static let nodeRows = [
        AdminOperation(
            .getMetrics, "GET", "/metrics", for: .read, "Every metric, for Prometheus",
            answers: [
                Answer(
                    200, "The metrics, as Accept asks for them", MetricsFormat.text.mediaType,
                    or: [MetricsFormat.openMetrics.mediaType], Shape.string)
            ]),
        AdminOperation(
            .getStatus, "GET", "/admin/v1/status", for: .read, "How things stand with the node",
            answers: [Answer(200, "Its status", StatusDocument.shape)]),
        AdminOperation(
            .getStatistics, "GET", "/admin/v1/statistics", for: .read,
            "What was counted since the start",
            answers: [Answer(200, "The figures", StatisticsDocument.shape)]),
        AdminOperation(
            .watchStatistics, "GET", "/admin/v1/events", for: .read,
            "The same again and again, as server-sent events",
            taking: [
                .query("interval_ms", .number(250...60_000), "How often; each second if not said")
            ],
            answers: [
                Answer(200, "Events named statistics", "text/event-stream", Shape.string)
            ]),
        AdminOperation(
            .listOrigins, "GET", "/admin/v1/origins", for: .read,
            "How things stand with each origin",
            answers: [Answer(200, "The origins", OriginRow.shape)]),
        AdminOperation(
            .getConfiguration, "GET", "/admin/v1/configuration", for: .read,
            "The settings that hold, and where each comes from",
            answers: [Answer(200, "The settings", ConfigurationDocument.shape)]),
        AdminOperation(
            .getLogLevel, "GET", "/admin/v1/log-level", for: .read,
            "The least severe message that is logged",
            answers: [Answer(200, "The level", LogLevelDocument.shape)]),
        AdminOperation(
            .setLogLevel, "PUT", "/admin/v1/log-level", for: .admin,
            "Log from another level on, until the next SIGHUP or start",
            body: Body(shape: LogLevelDocument.shape, bytesMax: LogLevelDocument.bodyBytesMax),
            answers: [
                Answer(200, "The level that holds now", LogLevelDocument.shape),
                Answer(problem: 422, "The body says no level"),
            ]),
        AdminOperation(
            .getSupportSnapshot, "GET", "/admin/v1/support", for: .admin,
            "All of this at once, for whoever has to find out what is wrong",
            answers: [Answer(200, "The documents of one moment", SupportDocument.shape)]),
        AdminOperation(
            .drain, "POST", "/admin/v1/drain", for: .admin,
            "Take the node off the ring and hand over what it owns; it goes on to run",
            taking: [
                .query("stop", .choice(["false", "true"]), "Whether it stops once that is done")
            ],
            answers: [Answer(202, "It begins", StateDocument.shape)]),
        AdminOperation(
            .undrain, "POST", "/admin/v1/undrain", for: .admin,
            "Put a drained node back on the ring",
            answers: [
                Answer(202, "It begins", StateDocument.shape),
                Answer(problem: 409, "The node is stopping"),
            ]),
    ]

    private static let clusterRows = [
        AdminOperation(
            .listMembers, "GET", "/admin/v1/members", for: .read,
            "Who is in the cluster, as this node believes",
            answers: [Answer(200, "The members", MemberRow.shape)]),
        AdminOperation(
            .forgetMembers, "POST", "/admin/v1/members/{nodes}/forget", for: .admin,
            "Count members no longer that will not come back",
            taking: [.path("nodes", .nodes, "The members' ids, with commas between them")],
            answers: [
                Answer(202, "It begins", StateDocument.shape),
                Answer(problem: 404, "There is no member of one of these ids"),
                Answer(problem: 409, "They are counted as before"),
            ]),
        AdminOperation(
            .bootstrap, "POST", "/admin/v1/members/bootstrap", for: .admin,
            "Open a cluster with this node, which has found none",
            answers: [
                Answer(202, "It begins", StateDocument.shape),
                Answer(problem: 409, "The node is in a cluster, or in none by its settings"),
            ]),
        AdminOperation(
            .recover, "POST", "/admin/v1/members/recover", for: .admin,
            "Begin the count of members anew with this node, which stays fenced",
            answers: [
                Answer(202, "It begins", StateDocument.shape),
                Answer(problem: 409, "The node is proven current, or follows no count"),
            ]),
        AdminOperation(
            .getRing, "GET", "/admin/v1/ring", for: .read, "Who owns how much",
            answers: [Answer(200, "The ring", RingDocument.shape)]),
    ]

    private static let purgeRows = [
        AdminOperation(
            .listPurges, "GET", "/admin/v1/purges", for: .read,
            "The receipts of the last purges, or that of the purge with an id",
            taking: [
                .query("id", .text(bytesMax: PurgeRequest.idBytesMax), "A client's id"),
                .query("limit", .number(1...100), "How many receipts; 20 if not said"),
            ],
            answers: [
                Answer(
                    200, "Receipts, the newest first; with id the one receipt",
                    Shape.anyOf(ReceiptDocument.listShape, ReceiptDocument.shape)),
                Answer(problem: 404, "There is no receipt of this id"),
            ]),
        AdminOperation(
            .issuePurge, "POST", "/admin/v1/purges", for: .purge, "Purge, and get the receipt",
            taking: PurgeOptions.parameters,
            body: Body(shape: PurgeRequest.shape, bytesMax: PurgeRequest.bodyBytesMax),
            answers: [
                Answer(200, "All have confirmed", ReceiptDocument.shape),
                Answer(202, "Somebody has not confirmed yet", ReceiptDocument.shape),
                Answer(problem: 409, "An earlier purge with this id is another one"),
                Answer(problem: 422, "A key, a value or a target is not allowed"),
                Answer(problem: 503, "Too much waits for the disk"),
            ]),
        AdminOperation(
            .getReceipt, "GET", "/admin/v1/purges/{receipt}", for: .read,
            "How far a purge has come",
            taking: [
                .path("receipt", .receipt, "Its name, as the answer to the purge says")
            ],
            answers: [
                Answer(200, "The receipt", ReceiptDocument.shape),
                Answer(problem: 404, "The log does not hold it"),
            ]),
    ]

    private static let prefetchName = AdminParameter.path(
        "prefetch", .text(bytesMax: 64), "Its name, as the answer that began it says")

    private static let prefetchRows = [
        AdminOperation(
            .listPrefetches, "GET", "/admin/v1/prefetches", for: .read,
            "The prefetches that run, and the last that are over",
            answers: [Answer(200, "The newest first", PrefetchDocument.listShape)]),
        AdminOperation(
            .beginPrefetch, "POST", "/admin/v1/prefetches", for: .purge,
            "Fetch images before clients ask for them",
            body: Body(shape: PrefetchRequest.shape, bytesMax: PrefetchRequest.bodyBytesMax),
            answers: [
                Answer(202, "It begins", PrefetchDocument.shape),
                Answer(problem: 409, "The node is stopping"),
                Answer(problem: 422, "A key or a value is not allowed"),
                Answer(problem: 503, "As many run as may"),
            ]),
        AdminOperation(
            .getPrefetch, "GET", "/admin/v1/prefetches/{prefetch}", for: .read,
            "How far a prefetch has come", taking: [prefetchName],
            answers: [
                Answer(200, "Its document", PrefetchDocument.shape),
                Answer(problem: 404, "There is no prefetch of this name"),
            ]),
        AdminOperation(
            .cancelPrefetch, "DELETE", "/admin/v1/prefetches/{prefetch}", for: .purge,
            "Ask for nothing more of a prefetch", taking: [prefetchName],
            answers: [
                Answer(202, "What is under way ends", PrefetchDocument.shape),
                Answer(problem: 404, "There is no prefetch of this name"),
            ]),
    ]
}

/// What was begun: `{"status": …}`.
package enum StateDocument {
    static let shape = Shape.object(.has("status", Shape.string))

    /// `state` is one word.
    package static func json(_ state: String) -> JSON { ["status": .text(state)] }
}
