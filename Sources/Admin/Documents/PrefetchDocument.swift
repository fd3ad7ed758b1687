/// How far a prefetch has come: `/admin/v1/prefetches/{name}`.
package struct PrefetchDocument: Hashable, Sendable, Codable {
    package enum Source: String, CaseIterable, Sendable, Codable {
        case urls
        case sitemap
    }

    package enum State: String, CaseIterable, Sendable, Codable {
        /// The sitemap is being read, and nothing of it was asked for yet.
        case reading
        case running
        case done
        /// An operator has said so, or the node stops; what was under way ends.
        case cancelled
        /// The sitemap could not be read.
        case failed

        /// Nothing more is begun.
        package var isFinished: Bool { self != .reading && self != .running }
    }

    /// A URL that was not prefetched, and why.
    package struct Failure: Hashable, Sendable, Codable {
        package var url: String
        package var reason: String

        package init(url: String, why: String) {
            self.url = url
            self.reason = why
        }

        private enum CodingKeys: String, CodingKey {
            case url
            case reason = "why"
        }
    }

    /// What it is called in paths.
    package var prefetch: String
    package var source: Source
    package var sitemap: String?
    package var state: State
    /// Known so far; without those that were named twice.
    package var urlsTotal = 0
    /// The sum of the next three.
    package var urlsDone = 0
    /// Were in memory or on disk, and still good.
    package var urlsCached = 0
    /// Came from an origin, or from the node that owns them.
    package var urlsFetched = 0
    package var urlsFailed = 0
    /// Those that could not be read, and what they name is not known.
    package var sitemapsFailed = 0
    /// Bytes of the bodies of those that were held or fetched.
    package var bodyBytes: UInt64 = 0
    /// Time from its beginning until now, or its end.
    package var elapsedMilliseconds: Int64 = 0
    /// The first ``faultsMax``.
    package var failures: [Failure] = []

    package static let failuresMax = 20

    package init(prefetch: String, source: Source, sitemap: String? = nil, state: State) {
        self.prefetch = prefetch
        self.source = source
        self.sitemap = sitemap
        self.state = state
    }

    private enum CodingKeys: String, CodingKey {
        case prefetch, source, sitemap, state
        case failures = "faults"
        case urlsTotal = "urls_total"
        case urlsDone = "urls_done"
        case urlsCached = "urls_held"
        case urlsFetched = "urls_fetched"
        case urlsFailed = "urls_failed"
        case sitemapsFailed = "sitemaps_failed"
        case bodyBytes = "body_bytes"
        case elapsedMilliseconds = "running_ms"
    }

    package var json: JSON {
        var members = [
            JSON.Member("prefetch", .text(prefetch)), JSON.Member("source", .text(source.rawValue)),
        ]
        if let sitemap { members.append(JSON.Member("sitemap", .text(sitemap))) }
        members += [
            JSON.Member("state", .text(state.rawValue)), JSON.Member("urls_total", JSON(urlsTotal)),
            JSON.Member("urls_done", JSON(urlsDone)), JSON.Member("urls_held", JSON(urlsCached)),
            JSON.Member("urls_fetched", JSON(urlsFetched)),
            JSON.Member("urls_failed", JSON(urlsFailed)),
            JSON.Member("sitemaps_failed", JSON(sitemapsFailed)),
            JSON.Member("body_bytes", JSON(bodyBytes)),
            JSON.Member("running_ms", JSON(elapsedMilliseconds)),
            JSON.Member(
                "faults", .list(failures.map { ["url": .text($0.url), "why": .text($0.reason)] })),
        ]
        return .object(members)
    }

    /// `{"prefetches":[…]}`, as they are given.
    package static func json(_ documents: [PrefetchDocument]) -> JSON {
        ["prefetches": .list(documents.map(\.json))]
    }

    static let listSchema = JSONSchema.object(.required("prefetches", JSONSchema.list(of: schema)))

    static let schema = JSONSchema.object(
        .required("prefetch", JSONSchema.string, "Its name in paths"),
        .required("source", JSONSchema.enumeration(Source.allCases.map(\.rawValue))),
        .optional("sitemap", JSONSchema.string),
        .required("state", JSONSchema.enumeration(State.allCases.map(\.rawValue))),
        .required("urls_total", JSONSchema.count, "Known so far, without repeats"),
        .required("urls_done", JSONSchema.count, "Held, fetched and failed"),
        .required(
            "urls_held", JSONSchema.count, "In memory or on disk of this node, and still good"),
        .required(
            "urls_fetched", JSONSchema.count,
            "Brought by an origin, or by the node that owns them"),
        .required("urls_failed", JSONSchema.count),
        .required("sitemaps_failed", JSONSchema.count, "Could not be read"),
        .required("body_bytes", JSONSchema.count, "Of those held and fetched"),
        .required("running_ms", JSONSchema.count, "From its beginning until now, or its end"),
        .required(
            "faults",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("url", JSONSchema.string), .required("why", JSONSchema.string)),
                count: 0...failuresMax)))
}
