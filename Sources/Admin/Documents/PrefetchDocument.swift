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
        package var isOver: Bool { self != .reading && self != .running }
    }

    /// A URL that was not prefetched, and why.
    package struct Fault: Hashable, Sendable, Codable {
        package var url: String
        package var why: String

        package init(url: String, why: String) {
            self.url = url
            self.why = why
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
    package var urlsHeld = 0
    /// Came from an origin, or from the node that owns them.
    package var urlsFetched = 0
    package var urlsFailed = 0
    /// Those that could not be read, and what they name is not known.
    package var sitemapsFailed = 0
    /// Bytes of the bodies of those that were held or fetched.
    package var bodyBytes: UInt64 = 0
    /// Time from its beginning until now, or its end.
    package var runningMilliseconds: Int64 = 0
    /// The first ``faultsMax``.
    package var faults: [Fault] = []

    package static let faultsMax = 20

    package init(prefetch: String, source: Source, sitemap: String? = nil, state: State) {
        self.prefetch = prefetch
        self.source = source
        self.sitemap = sitemap
        self.state = state
    }

    private enum CodingKeys: String, CodingKey {
        case prefetch, source, sitemap, state, faults
        case urlsTotal = "urls_total"
        case urlsDone = "urls_done"
        case urlsHeld = "urls_held"
        case urlsFetched = "urls_fetched"
        case urlsFailed = "urls_failed"
        case sitemapsFailed = "sitemaps_failed"
        case bodyBytes = "body_bytes"
        case runningMilliseconds = "running_ms"
    }

    package var json: JSON {
        var members = [
            JSON.Member("prefetch", .text(prefetch)), JSON.Member("source", .text(source.rawValue)),
        ]
        if let sitemap { members.append(JSON.Member("sitemap", .text(sitemap))) }
        members += [
            JSON.Member("state", .text(state.rawValue)), JSON.Member("urls_total", JSON(urlsTotal)),
            JSON.Member("urls_done", JSON(urlsDone)), JSON.Member("urls_held", JSON(urlsHeld)),
            JSON.Member("urls_fetched", JSON(urlsFetched)),
            JSON.Member("urls_failed", JSON(urlsFailed)),
            JSON.Member("sitemaps_failed", JSON(sitemapsFailed)),
            JSON.Member("body_bytes", JSON(bodyBytes)),
            JSON.Member("running_ms", JSON(runningMilliseconds)),
            JSON.Member(
                "faults", .list(faults.map { ["url": .text($0.url), "why": .text($0.why)] })),
        ]
        return .object(members)
    }

    /// `{"prefetches":[…]}`, as they are given.
    package static func json(_ documents: [PrefetchDocument]) -> JSON {
        ["prefetches": .list(documents.map(\.json))]
    }

    static let listShape = Shape.object(.has("prefetches", Shape.list(of: shape)))

    static let shape = Shape.object(
        .has("prefetch", Shape.string, "Its name in paths"),
        .has("source", Shape.choice(Source.allCases.map(\.rawValue))),
        .may("sitemap", Shape.string),
        .has("state", Shape.choice(State.allCases.map(\.rawValue))),
        .has("urls_total", Shape.count, "Known so far, without repeats"),
        .has("urls_done", Shape.count, "Held, fetched and failed"),
        .has("urls_held", Shape.count, "In memory or on disk of this node, and still good"),
        .has("urls_fetched", Shape.count, "Brought by an origin, or by the node that owns them"),
        .has("urls_failed", Shape.count),
        .has("sitemaps_failed", Shape.count, "Could not be read"),
        .has("body_bytes", Shape.count, "Of those held and fetched"),
        .has("running_ms", Shape.count, "From its beginning until now, or its end"),
        .has(
            "faults",
            Shape.list(
                of: Shape.object(.has("url", Shape.string), .has("why", Shape.string)),
                count: 0...faultsMax)))
}
