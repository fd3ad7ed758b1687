/// The progress of a prefetch job: `/admin/v1/prefetches/{name}`.
package struct PrefetchDocument: ListedDocument {
    /// The kind of source of the URLs.
    package enum Source: String, CaseIterable, DocumentValue {
        case urls
        case sitemap
    }

    /// The state of the job.
    package enum State: String, CaseIterable, DocumentValue {
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

    /// The URL of an image that could not be prefetched or of a sitemap that could not be used in
    /// full, and why.
    package struct Failure: AdminDocument {
        /// The URL.
        package var url = ""
        /// The reason, in words.
        package var reason = ""

        /// Creates a failure of no URL.
        package init() {}

        /// Creates a failure from its parts.
        package init(url: String, reason: String) {
            self.url = url
            self.reason = reason
        }

        /// The members.
        package static let fields: [Field] = [
            .required("url", \.url), .required("why", \.reason),
        ]
    }

    /// The name of the job in paths.
    package var prefetch = ""
    /// The kind of source of the URLs.
    package var source = Source.urls
    /// The URL of the sitemap; `nil` for a list of URLs.
    package var sitemap: String?
    /// The state of the job.
    package var state = State.reading
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
    /// The first failures, and notes about entries of sitemaps that were skipped; up to
    /// ``failuresMax``.
    package var failures: [Failure] = []

    /// The maximum number of failures listed.
    package static let failuresMax = 20

    /// Creates the document of a job without a name.
    package init() {}

    /// Creates the document of a new job.
    package init(prefetch: String, source: Source, sitemap: String? = nil, state: State) {
        self.prefetch = prefetch
        self.source = source
        self.sitemap = sitemap
        self.state = state
    }

    /// The name of the list.
    package static let listName = "prefetches"

    /// The members.
    package static let fields: [Field] = [
        .required("prefetch", \.prefetch, "The name of the job in paths"),
        .required("source", \.source),
        .optional("sitemap", \.sitemap),
        .required("state", \.state),
        .required("urls_total", \.urlsTotal, "URLs known so far, without duplicates"),
        .required("urls_done", \.urlsDone, "The sum of urls_held, urls_fetched and urls_failed"),
        .required(
            "urls_held", \.urlsCached, "Already in memory or on disk of this node, and valid"),
        .required("urls_fetched", \.urlsFetched, "Fetched from an origin or from their owner"),
        .required("urls_failed", \.urlsFailed),
        .required("sitemaps_failed", \.sitemapsFailed, "Sitemaps that could not be read"),
        .required("body_bytes", \.bodyBytes, "Total size of the bodies held and fetched"),
        .required(
            "running_ms", \.elapsedMilliseconds, "Time from the start until now, or until the end"),
        .required("faults", \.failures, as: .list(of: Failure.schema, count: 0...failuresMax)),
    ]
}
