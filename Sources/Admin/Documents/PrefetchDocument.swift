/// The progress of a prefetch job: `/admin/v1/prefetches/{name}`.
package struct PrefetchDocument: Hashable, Sendable, Codable {
    /// The kind of source of the URLs.
    package enum Source: String, CaseIterable, Sendable, Codable {
        case urls
        case sitemap
    }

    /// The state of the job.
    package enum State: String, CaseIterable, Sendable, Codable {
        /// The sitemap is being read, and no URL has been requested yet.
        case reading
        case running
        case done
        /// An operator cancelled the job, or the node stops; running requests finish.
        case cancelled
        /// The sitemap could not be read.
        case failed

        /// True if no further requests are started.
        package var isFinished: Bool { self != .reading && self != .running }
    }

    /// A URL that could not be prefetched, and why.
    package struct Failure: Hashable, Sendable, Codable {
        /// The URL.
        package var url: String
        /// The reason, in words.
        package var reason: String

        /// Creates a failure; `why` is its ``reason``.
        package init(url: String, reason: String) {
            self.url = url
            self.reason = reason
        }

        private enum CodingKeys: String, CodingKey {
            case url
            case reason = "why"
        }
    }

    /// The name of the job in paths.
    package var prefetch: String
    /// The kind of source of the URLs.
    package var source: Source
    /// The URL of the sitemap; `nil` for a list of URLs.
    package var sitemap: String?
    /// The state of the job.
    package var state: State
    /// The number of URLs known so far, without duplicates.
    package var urlsTotal = 0
    /// The number of finished URLs: the sum of cached, fetched and failed ones.
    package var urlsDone = 0
    /// The number of URLs found in memory or on disk, and still valid.
    package var urlsCached = 0
    /// The number of URLs fetched from an origin or from their owner.
    package var urlsFetched = 0
    /// The number of URLs that failed.
    package var urlsFailed = 0
    /// The number of sitemaps that could not be read; their URLs are unknown.
    package var sitemapsFailed = 0
    /// The total size in bytes of the bodies cached or fetched.
    package var bodyBytes: UInt64 = 0
    /// The time in milliseconds from the start until now, or until the end.
    package var elapsedMilliseconds: Int64 = 0
    /// The first failures, up to ``failuresMax``.
    package var failures: [Failure] = []

    /// The maximum number of failures listed.
    package static let failuresMax = 20

    /// Creates the document of a new job.
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

    /// The document as JSON.
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

    /// Returns `{"prefetches":[…]}` in the given order.
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
