package import Telemetry

/// The counters since the start, with the node's state: `/admin/v1/statistics`, and each event of
/// `/admin/v1/events`.
package struct StatisticsDocument: AdminDocument {
    /// The time in milliseconds since the node started.
    package var uptimeMilliseconds: Int64 = 0
    /// The number of responses by source.
    package var requests = SourceCounts()
    /// The body bytes sent by source.
    package var bytes = SourceCounts()
    /// The number of responses by status class.
    package var responses = StatusCounts()
    /// The errors by reason.
    package var errors = ErrorCounts()
    /// The fetches from origins.
    package var origin = OriginCounts()
    /// The histogram of response times.
    package var latency = LatencyHistogram()
    /// The node's readiness: a raw value of ``Readiness``, or one that only newer versions know.
    package var readiness = ""
    /// The time in milliseconds since the fence closed; `nil` if it is open.
    package var fencedMilliseconds: Int64?
    /// The state of the memory tier.
    package var memory = StatusDocument.Memory()
    /// The state of the disk tier; `nil` without one.
    package var disk: StatusDocument.Disk?
    /// The state of the invalidation log.
    package var invalidations = StatusDocument.Invalidations()
    /// The state of the cluster; `nil` for a node outside any cluster.
    package var cluster: StatusDocument.Cluster?
    /// The members of the cluster.
    package var members: [MemberDocument] = []

    /// Creates an empty document.
    package init() {}

    /// Reads the counters and the state of the memory tier from `snapshot`.
    package init(_ snapshot: MetricsSnapshot) {
        let outcomes = snapshot.outcomes
        requests = SourceCounts { outcomes[$0].count }
        bytes = SourceCounts { outcomes[$0].bodyBytes }
        responses = StatusCounts(snapshot)
        errors = ErrorCounts(snapshot)
        origin = OriginCounts(snapshot)
        latency = LatencyHistogram(outcomes)
        memory = StatusDocument.Memory(snapshot)
    }

    /// True if the fence is closed.
    package var isFenced: Bool { fencedMilliseconds != nil }

    /// The members.
    package static let fields: [Field] = [
        .required("at_ms", \.uptimeMilliseconds, "Time since the start of the node"),
        .required("requests", \.requests),
        .required("bytes", \.bytes),
        .required("origin", \.origin),
        .required("latency", \.latency),
        .required("readiness", \.readiness, as: .enumeration(Readiness.self)),
        .derived("fenced", \.isFenced),
        .nullable("fenced_ms", \.fencedMilliseconds),
        .required("memory", \.memory),
        .nullable("disk", \.disk),
        .required("invalidations", \.invalidations),
        .nullable("cluster", \.cluster),
        .required("members", \.members),
        .required("responses", \.responses, "Responses by status class", isLenient: true),
        .required("errors", \.errors, "Errors by reason", isLenient: true),
    ]
}

/// The responses by class of their status.
package struct StatusCounts: AdminDocument {
    /// 101: requests for which the origin has switched protocols.
    package var informational: UInt64 = 0
    /// 200 to 299.
    package var successful: UInt64 = 0
    /// 300 to 399.
    package var redirected: UInt64 = 0
    /// 400 to 499.
    package var clientErrors: UInt64 = 0
    /// 500 to 599.
    package var serverErrors: UInt64 = 0

    private static let classes: [(status: StatusClass, path: Field.Path<UInt64>)] = [
        (.informational, \.informational), (.successful, \.successful), (.redirected, \.redirected),
        (.clientError, \.clientErrors), (.serverError, \.serverErrors),
    ]

    /// The members.
    package static let fields: [Field] = classes.map { .required($0.status.label, $0.path) }

    /// Creates counts of zero.
    package init() {}

    /// Reads the counters from `snapshot`.
    package init(_ snapshot: MetricsSnapshot) {
        // A label is a class or a status that is not counted in its class.
        for (label, count) in snapshot.counts(of: MetricTable.responses) {
            for (status, path) in Self.classes where status.label.first == label.first {
                self[keyPath: path] &+= count
            }
        }
        // The metric counts 101 as 2xx.
        informational = min(snapshot[.upgrades], successful)
        successful -= informational
    }

    /// Reads the counters of a site.
    package init(_ site: SiteSnapshot) {
        for (status, path) in Self.classes { self[keyPath: path] = site[.responses(status)] }
    }

    /// All responses.
    package var all: UInt64 { Self.classes.reduce(0) { $0 &+ self[keyPath: $1.path] } }

    /// Combines two counts class by class.
    package func merged(
        _ other: StatusCounts, _ merge: (UInt64, UInt64) -> UInt64
    ) -> StatusCounts {
        var merged = StatusCounts()
        for (_, path) in Self.classes {
            merged[keyPath: path] = merge(self[keyPath: path], other[keyPath: path])
        }
        return merged
    }
}

/// The errors by reason; the reasons are those of the metrics.
package struct ErrorCounts: AdminDocument {
    /// Requests refused by limit, as in `nuthatch_refused_total`.
    package var refused = NamedCounts()
    /// Failed fetches, as in `nuthatch_origin_failures_total`.
    package var origin = NamedCounts()

    /// Creates counts without reasons.
    package init() {}

    /// Reads the counters from `snapshot`.
    init(_ snapshot: MetricsSnapshot) {
        refused = NamedCounts(snapshot.counts(of: OriginMetrics.refusals))
        origin = NamedCounts(snapshot.counts(of: OriginMetrics.failures))
    }

    /// The members.
    package static let fields: [Field] = [
        .required("refused", \.refused, "Requests refused with 503 because of a limit, by limit"),
        .required("origin", \.origin, "Failed fetches from origins, by reason"),
    ]
}

/// The responses or their bytes by source.
package struct SourceCounts: AdminDocument {
    /// From memory.
    package var memory: UInt64 = 0
    /// From disk.
    package var disk: UInt64 = 0
    /// From a peer.
    package var peer: UInt64 = 0
    /// From an origin, stored or not.
    package var origin: UInt64 = 0
    /// Stored and revalidated with the origin.
    package var revalidated: UInt64 = 0
    /// From a fetch that another request had started.
    package var collapsed: UInt64 = 0
    /// Stored and served stale.
    package var stale: UInt64 = 0
    /// From the origin without use of the cache.
    package var passed: UInt64 = 0
    /// Generated by the node itself.
    package var none: UInt64 = 0

    /// A source: its name in JSON, its count, and the outcome that is counted.
    private typealias Source = (
        name: String, path: Field.Path<UInt64>, outcome: CacheOutcome
    )

    private static let sources: [Source] = [
        ("memory", \.memory, .hit), ("disk", \.disk, .disk), ("peer", \.peer, .peer),
        ("origin", \.origin, .miss), ("revalidated", \.revalidated, .revalidated),
        ("collapsed", \.collapsed, .collapsed), ("stale", \.stale, .stale),
        ("passed", \.passed, .bypassed), ("none", \.none, .generated),
    ]

    /// The members.
    package static let fields: [Field] = sources.map { .required($0.name, $0.path) }

    /// Creates counts of zero.
    package init() {}

    /// Creates the counts that `value` returns for each outcome.
    package init(_ value: (CacheOutcome) -> UInt64) {
        for source in Self.sources { self[keyPath: source.path] = value(source.outcome) }
    }

    /// Reads the number of requests by source from `snapshot`, each as soon as its response begins.
    package init(begun snapshot: MetricsSnapshot) {
        let counts = NamedCounts(snapshot.counts(of: MetricTable.requests))
        self.init { counts[$0.label] }
    }

    /// The responses that did not need a body from the origin for themselves.
    package var hits: UInt64 { memory &+ disk &+ peer &+ revalidated &+ collapsed &+ stale }
    /// The responses that the cache could have served: the hits, and those fetched from an origin.
    package var cacheable: UInt64 { hits &+ origin }
    /// All responses.
    package var all: UInt64 { cacheable &+ passed &+ none }

    /// Combines two counts source by source.
    package func merged(
        _ other: SourceCounts, _ merge: (UInt64, UInt64) -> UInt64
    ) -> SourceCounts {
        var merged = SourceCounts()
        for (_, path, _) in Self.sources {
            merged[keyPath: path] = merge(self[keyPath: path], other[keyPath: path])
        }
        return merged
    }
}

/// The fetches from origins.
package struct OriginCounts: AdminDocument {
    /// The number of successful fetches.
    package var fetchesOK: UInt64 = 0
    /// The number of failed fetches.
    package var fetchesFailed: UInt64 = 0
    /// The number of bytes received.
    package var receivedBytes: UInt64 = 0

    /// Creates counts of zero.
    package init() {}

    /// Reads the counters from `snapshot`.
    init(_ snapshot: MetricsSnapshot) {
        fetchesOK = snapshot[.originFetchesOK]
        fetchesFailed = snapshot[.originFetchesFailed]
        receivedBytes = snapshot[.originReceivedBytes]
    }

    /// The members.
    package static let fields: [Field] = [
        .required("fetches_ok", \.fetchesOK),
        .required("fetches_failed", \.fetchesFailed),
        .required("received_bytes", \.receivedBytes),
    ]
}

/// The histogram of response times by source.
package struct LatencyHistogram: AdminDocument {
    /// The upper bounds of the buckets in microseconds; one more bucket is above the last.
    package var bounds: [UInt64] = []
    /// The buckets of responses from memory.
    package var memory: [UInt64] = []
    /// The buckets of responses from disk.
    package var disk: [UInt64] = []
    /// The buckets of responses from peers.
    package var peer: [UInt64] = []
    /// The buckets of responses from origins.
    package var origin: [UInt64] = []

    /// Creates a histogram without buckets.
    package init() {}

    /// Reads the histogram of the sources that it covers from `outcomes`.
    init(_ outcomes: OutcomeSnapshot) {
        bounds = LatencyBuckets.bounds
        memory = outcomes[.hit].counts
        disk = outcomes[.disk].counts
        peer = outcomes[.peer].counts
        origin = outcomes[.miss].counts
    }

    private static let buckets = JSONSchema.list(
        of: .count, count: LatencyBuckets.count...LatencyBuckets.count)

    /// The members.
    package static let fields: [Field] = [
        .required("bounds_us", \.bounds),
        .required("memory", \.memory, as: buckets),
        .required("disk", \.disk, as: buckets),
        .required("peer", \.peer, as: buckets),
        .required("origin", \.origin, as: buckets),
    ]

    /// Returns a quantile in microseconds, interpolated linearly within its bucket.
    ///
    /// It is infinite above the last bound, and `nil` without responses.
    package static func quantile(
        _ share: Double, of buckets: [UInt64], bounds: [UInt64]
    ) -> Double? {
        let all = buckets.reduce(0, &+)
        guard all > 0 else { return nil }
        let wanted = share * Double(all)
        var below = 0.0
        for (index, count) in buckets.enumerated() where count > 0 {
            guard below + Double(count) < wanted else {
                guard index < bounds.count else { return .infinity }
                let floor = index == 0 ? 0 : Double(bounds[index - 1])
                let part = max(0, wanted - below) / Double(count)
                return floor + (Double(bounds[index]) - floor) * part
            }
            below += Double(count)
        }
        return .infinity
    }
}
