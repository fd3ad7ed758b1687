package import Ground
package import Telemetry

/// The counters of a node at one time.
package struct TrafficSample: Sendable {
    /// The time since the start of the node.
    package let uptime: Interval
    /// The metrics of the node.
    package let metrics: MetricsSnapshot
    /// The response times of all responses by bucket of ``LatencyBuckets``.
    let latency: [UInt64]
    /// The responses by site.
    let sites: [SiteCounts]

    /// The responses of one site.
    package struct SiteCounts: Hashable, Sendable {
        /// The name of the site; ``SiteDocument/imagesName`` for images requested by their URLs.
        package let site: String
        /// All responses.
        package let requests: UInt64
        /// The 5xx responses.
        package let serverErrors: UInt64

        /// Creates counts from their parts.
        package init(site: String, requests: UInt64, serverErrors: UInt64) {
            self.site = site
            self.requests = requests
            self.serverErrors = serverErrors
        }
    }

    /// Reads the counters from `snapshot`, taken at `uptime`; `sites` has the responses by site.
    package init(_ snapshot: MetricsSnapshot, sites: [SiteCounts], at uptime: Interval) {
        self.uptime = uptime
        metrics = snapshot.ofNode
        latency = snapshot.outcomes.rows.reduce(
            into: [UInt64](repeating: 0, count: LatencyBuckets.count)
        ) { sums, row in
            for (bucket, count) in row.counts.enumerated() { sums[bucket] &+= count }
        }
        self.sites = sites
    }
}

/// The difference between two samples.
package struct TrafficWindow: Sendable {
    /// The earlier sample; `nil` for the start of the node.
    let from: TrafficSample?
    let to: TrafficSample

    /// The time between the samples.
    package var duration: Interval {
        Interval(nanoseconds: to.uptime.nanoseconds - (from?.uptime.nanoseconds ?? 0))
    }

    /// The increase of a counter.
    package subscript(metric: Metric) -> UInt64 {
        Self.increase(from?.metrics[metric] ?? 0, to.metrics[metric])
    }

    /// The increase of the responses by status class.
    var responses: StatusCounts {
        let former = from.map { StatusCounts($0.metrics) } ?? StatusCounts()
        return former.merged(StatusCounts(to.metrics), Self.increase)
    }

    /// The increase of the requests by source.
    var requests: SourceCounts {
        let former = from.map { SourceCounts(begun: $0.metrics) } ?? SourceCounts()
        return former.merged(SourceCounts(begun: to.metrics), Self.increase)
    }

    /// The increase of the response times by bucket.
    var latency: [UInt64] {
        guard let from else { return to.latency }
        return zip(from.latency, to.latency).map(Self.increase)
    }

    /// Returns the increase of the responses of the site at an index of the later sample; `nil` if
    /// the site is not in the earlier one.
    func responses(ofSite index: Int) -> TrafficSample.SiteCounts? {
        let new = to.sites[index]
        guard let from else { return new }
        // The order changes only with the settings.
        let isInPlace = from.sites.indices.contains(index) && from.sites[index].site == new.site
        let old = isInPlace ? from.sites[index] : from.sites.first { $0.site == new.site }
        return old.map { old in
            TrafficSample.SiteCounts(
                site: new.site, requests: Self.increase(old.requests, new.requests),
                serverErrors: Self.increase(old.serverErrors, new.serverErrors))
        }
    }

    /// Returns the increase of a counter; 0 if it has decreased, as that of a removed site does.
    private static func increase(_ old: UInt64, _ new: UInt64) -> UInt64 {
        new > old ? new - old : 0
    }
}

/// The traffic of the last hour in intervals of 10 s, and the samples of the last five minutes.
///
/// The memory is bounded, see ``bytes``: 360 intervals of ten amounts, 29 kB, and 31 samples with
/// every metric, 55 kB, and 32 bytes for each site in each sample.
package struct TrafficHistory: Sendable {
    /// The amounts of an interval; the raw value is the index in an element of ``intervals``.
    enum Amount: Int, CaseIterable {
        case requests, hits, misses, clientErrors, serverErrors, sentBytes, originBytes
        case originFailed
        /// In microseconds; 0 without responses.
        case median
        /// In microseconds; 0 without responses.
        case percentile99
    }

    /// The length of an interval.
    package static let interval = Interval.seconds(10)
    /// Maximum number of intervals kept: an hour.
    package static let intervalsMax = 360
    /// Maximum number of samples kept: one more than five minutes have.
    static let samplesMax = 31

    /// The amounts of the intervals, the oldest first.
    private(set) var intervals: [InlineArray<10, UInt64>] = []
    /// The number of the newest interval that has ended, from 1; 0 before the first has.
    private(set) var newest: Int64 = 0
    /// The samples at the ends of intervals, the oldest first.
    private(set) var samples: [TrafficSample] = []
    /// True once a sample was dropped, so that the oldest is not the first.
    private var hasDropped = false

    /// Creates a history without intervals.
    package init() {}

    /// The bytes of all intervals and samples.
    package var bytes: Int {
        let ofSample = (Metric.allCases.count + LatencyBuckets.count) * MemoryLayout<UInt64>.size
        return intervals.count * MemoryLayout<InlineArray<10, UInt64>>.size
            + samples.reduce(0) { sum, sample in
                sum + ofSample
                    + sample.sites.count * MemoryLayout<TrafficSample.SiteCounts>.stride
            }
    }

    /// Returns true if an interval has ended at `uptime` that is not recorded.
    package func isDue(at uptime: Interval) -> Bool { Self.number(at: uptime) > newest }

    /// Records the interval that has ended at the time of `sample`; does nothing if it is recorded.
    ///
    /// If several intervals have ended since the last sample, its amounts are divided among them,
    /// so that no interval is missing.
    package mutating func record(_ sample: TrafficSample) {
        let number = Self.number(at: sample.uptime)
        guard number > newest else { return }
        let window = TrafficWindow(from: samples.last, to: sample)
        let ended = UInt64(number - newest)
        let amounts = Self.amounts(window)
        var (share, rest) = (amounts, amounts)
        for amount in Amount.allCases where amount != .median && amount != .percentile99 {
            share[amount.rawValue] = amounts[amount.rawValue] / ended
            rest[amount.rawValue] = amounts[amount.rawValue] - share[amount.rawValue] * (ended - 1)
        }
        for _ in 1..<min(Int(clamping: ended), Self.intervalsMax) { intervals.append(share) }
        intervals.append(rest)
        intervals.removeFirst(max(0, intervals.count - Self.intervalsMax))
        newest = number
        samples.append(sample)
        guard samples.count > Self.samplesMax else { return }
        samples.removeFirst()
        hasDropped = true
    }

    /// Returns what has happened between `sample`, which is the present, and at least `length`
    /// before it, at most one interval more; less if the history is shorter.
    package func window(_ length: Interval, until sample: TrafficSample) -> TrafficWindow {
        let limit = sample.uptime.nanoseconds - length.nanoseconds
        let from = samples.last { $0.uptime.nanoseconds <= limit }
        return TrafficWindow(from: from ?? (hasDropped ? samples.first : nil), to: sample)
    }

    /// Returns the number of intervals that have ended at `uptime`.
    private static func number(at uptime: Interval) -> Int64 {
        max(0, uptime.nanoseconds / interval.nanoseconds)
    }

    /// Returns the amounts of a window.
    private static func amounts(_ window: TrafficWindow) -> InlineArray<10, UInt64> {
        let (requests, responses) = (window.requests, window.responses)
        var amounts = InlineArray<10, UInt64>(repeating: 0)
        amounts[Amount.requests.rawValue] = responses.all
        amounts[Amount.hits.rawValue] = requests.hits
        amounts[Amount.misses.rawValue] = requests.origin
        amounts[Amount.clientErrors.rawValue] = responses.clientErrors
        amounts[Amount.serverErrors.rawValue] = responses.serverErrors
        amounts[Amount.sentBytes.rawValue] = window[.sentBytes]
        amounts[Amount.originBytes.rawValue] = window[.originReceivedBytes]
        amounts[Amount.originFailed.rawValue] = window[.originFetchesFailed]
        amounts[Amount.median.rawValue] = quantile(0.5, of: window.latency)
        amounts[Amount.percentile99.rawValue] = quantile(0.99, of: window.latency)
        return amounts
    }

    /// Returns a quantile in microseconds; 0 without responses, and the last bound for a longer
    /// time.
    private static func quantile(_ share: Double, of buckets: [UInt64]) -> UInt64 {
        let bounds = LatencyBuckets.bounds
        guard let value = LatencyHistogram.quantile(share, of: buckets, bounds: bounds) else {
            return 0
        }
        return value.isFinite ? UInt64(value.rounded()) : bounds.last ?? 0
    }
}

/// The traffic of the last hour at intervals of 10 s: `/admin/v1/history`.
///
/// All columns have the same length, at most ``TrafficHistory/intervalsMax``; each value is the
/// amount of one interval, the oldest first. Intervals are of the node's uptime, without gaps.
package struct HistoryDocument: AdminDocument {
    /// The length of an interval in milliseconds.
    package var intervalMilliseconds: Int64 = 10_000
    /// The uptime in milliseconds at the end of the newest interval.
    package var newestMilliseconds: Int64 = 0
    /// The responses.
    package var requests: [UInt64] = []
    /// The responses that needed no body from an origin for themselves.
    package var hits: [UInt64] = []
    /// The responses fetched from an origin.
    package var misses: [UInt64] = []
    /// The 4xx responses.
    package var clientErrors: [UInt64] = []
    /// The 5xx responses.
    package var serverErrors: [UInt64] = []
    /// The bytes sent to clients, heads included.
    package var sentBytes: [UInt64] = []
    /// The body bytes received from origins.
    package var originBytes: [UInt64] = []
    /// The median of the response times in microseconds; 0 without responses.
    package var medianMicroseconds: [UInt64] = []
    /// The 99th percentile of the response times in microseconds; 0 without responses.
    package var percentile99Microseconds: [UInt64] = []
    /// The failed fetches.
    package var originFailed: [UInt64] = []

    /// Creates a history without intervals.
    package init() {}

    /// The columns, each with the amount that it shows of an interval.
    private static let columns: [(path: Field.Path<[UInt64]>, amount: TrafficHistory.Amount)] = [
        (\.requests, .requests), (\.hits, .hits), (\.misses, .misses),
        (\.clientErrors, .clientErrors), (\.serverErrors, .serverErrors),
        (\.sentBytes, .sentBytes), (\.originBytes, .originBytes),
        (\.medianMicroseconds, .median), (\.percentile99Microseconds, .percentile99),
        (\.originFailed, .originFailed),
    ]

    /// Creates the document of `history`.
    package init(_ history: TrafficHistory) {
        intervalMilliseconds = TrafficHistory.interval.milliseconds
        newestMilliseconds = history.newest * TrafficHistory.interval.milliseconds
        for (path, amount) in Self.columns {
            self[keyPath: path] = history.intervals.map { $0[amount.rawValue] }
        }
    }

    /// The members.
    package static let fields: [Field] = [
        .required("interval_ms", \.intervalMilliseconds),
        .required(
            "newest_ms", \.newestMilliseconds, "The uptime at the end of the newest interval"),
        .required("requests", \.requests, "Responses per interval, the oldest first"),
        .required("hits", \.hits, "Responses that needed no body from an origin for themselves"),
        .required("misses", \.misses, "Responses fetched from an origin"),
        .required("errors_4xx", \.clientErrors),
        .required("errors_5xx", \.serverErrors),
        .required("sent_bytes", \.sentBytes),
        .required("origin_bytes", \.originBytes, "Body bytes received from origins"),
        .required("p50_us", \.medianMicroseconds, "0 without responses"),
        .required("p99_us", \.percentile99Microseconds, "0 without responses"),
        .required("origin_failed", \.originFailed, "Failed fetches"),
    ]
}
