package import Admin
package import Ground

/// A node that `nuthatch top` queries, with its latest statistics and their history.
package struct TopNode: Sendable {
    /// The statistics at one time.
    struct Sample: Sendable {
        var report: StatisticsDocument
        /// The time of arrival on this machine's clock.
        var at: Instant
    }

    /// The activity between two responses.
    struct Point: Sendable {
        var requestsPerSecond: Double
        /// The responses by source between the two.
        var counts: SourceCounts
    }

    /// A failure to respond.
    package struct Failure: Hashable, Sendable {
        /// The reason in a few words.
        package var reason: String
        /// The time since which the node does not respond.
        package var since: Instant
    }

    /// The address as the operator wrote it.
    package let endpoint: String
    /// The node id; `nil` before the first response.
    package private(set) var id: String?
    /// The current failure; `nil` while the node responds.
    package private(set) var failure: Failure?
    /// The latest statistics of one process, the newest last.
    private(set) var samples: [Sample] = []
    /// The activity at each query, `nil` without a response; the newest last.
    private(set) var points: [Point?] = []
    /// The most requested entries.
    var hot: [HotEntryDocument] = []
    /// The latest purges.
    var purges: [ReceiptDocument] = []

    /// The conditions; `nil` if the node reports none.
    var reportedConditions: [Condition]?
    /// The origins.
    var origins: [OriginDocument] = []
    /// The sites.
    var sites: [SiteDocument] = []
    /// The certificates.
    var certificates: [CertificateDocument] = []

    /// The largest number of points.
    static let pointsMax = 600
    /// The time over which rates are computed.
    static let window = Interval.seconds(5)
    /// The largest number of samples.
    private static let samplesMax = 64

    /// Creates a node that has not been queried.
    package init(place: String, id: String? = nil) {
        self.endpoint = place
        self.id = id
    }

    /// The latest statistics; `nil` while the node does not respond.
    package var report: StatisticsDocument? { failure == nil ? samples.last?.report : nil }

    /// The name, the first digits of the id, or the address.
    var name: String {
        if let own = report?.members.first(where: \.isSelf) { return own.shortName }
        return id.map { String($0.prefix(8)) } ?? endpoint
    }

    /// Returns the conditions: those reported, or those that follow from the statistics, or that it
    /// does not respond.
    func conditions(now: Instant) -> [Condition] {
        if let failure {
            var condition = Condition(unansweredBy: endpoint, failure.reason)
            condition.sinceMilliseconds = (now - failure.since).milliseconds
            return [condition]
        }
        return reportedConditions ?? report?.basicConditions ?? []
    }

    /// Records statistics that arrived at `now`, and the activity since the previous ones.
    ///
    /// Ends a failure. Samples of an earlier process of the node are dropped.
    mutating func statisticsReceived(_ report: StatisticsDocument, at now: Instant) {
        failure = nil
        id = report.members.first(where: \.isSelf)?.node ?? id
        // The counts of another process cannot be subtracted.
        if let last = samples.last?.report, report.isFromAnotherProcess(than: last) { samples = [] }
        let point = samples.last.map { Self.point(from: $0.report, to: report) }
        appendPoint(point)
        samples.append(Sample(report: report, at: now))
        if samples.count > Self.samplesMax { samples.removeFirst() }
    }

    /// Sets the node id.
    mutating func identify(_ id: String) { self.id = id }

    /// Records a failed query; a failure in progress keeps its beginning.
    mutating func requestFailed(_ why: String, at now: Instant) {
        failure = Failure(reason: why, since: failure?.since ?? now)
        appendPoint(nil)
    }

    /// Adds a point and drops the oldest beyond the limit.
    private mutating func appendPoint(_ point: Point?) {
        points.append(point)
        if points.count > Self.pointsMax { points.removeFirst() }
    }

    /// Returns the activity between two statistics.
    private static func point(from old: StatisticsDocument, to new: StatisticsDocument) -> Point {
        let seconds = Double(new.uptimeMilliseconds &- old.uptimeMilliseconds) / 1000
        let counts = new.requests - old.requests
        return Point(requestsPerSecond: Double(counts.all) / seconds, counts: counts)
    }

    /// The rates over the last ``window``, or since the previous sample if that is older.
    ///
    /// `nil` if the node does not respond, or its process has responded only once.
    var rates: TopRates? {
        guard failure == nil, let last = samples.last, samples.count > 1 else { return nil }
        let first =
            samples.dropLast().first { last.at - $0.at <= Self.window }
            ?? samples[samples.count - 2]
        return TopRates(from: first.report, to: last.report)
    }
}

/// The activity of nodes over some time.
struct TopRates: Sendable {
    /// Responses per second.
    var requestsPerSecond = 0.0
    /// The responses by source.
    var requests: SourceCounts
    /// The body bytes by source.
    var bytes: SourceCounts
    /// Body bytes sent per second.
    var sentPerSecond: Double
    /// Fetches from origins per second.
    var fetchesPerSecond: Double
    /// Bytes received from origins per second.
    var receivedPerSecond: Double
    /// The buckets of response times.
    var buckets: [UInt64]
    /// The upper bounds of the buckets in microseconds.
    let bounds: [UInt64]
    /// The responses by status class.
    var responses: StatusCounts
    /// The refused requests by limit.
    var refused: NamedCounts
    /// The failed fetches by reason.
    var failed: NamedCounts
    /// The length of the time in seconds.
    let seconds: Double

    /// Computes the rates between two statistics of one process.
    init(from old: StatisticsDocument, to new: StatisticsDocument) {
        let seconds = Double(new.uptimeMilliseconds &- old.uptimeMilliseconds) / 1000
        requests = new.requests - old.requests
        bytes = new.bytes - old.bytes
        requestsPerSecond = Double(requests.all) / seconds
        sentPerSecond = Double(bytes.all) / seconds
        fetchesPerSecond = Double(new.origin.fetches &- old.origin.fetches) / seconds
        receivedPerSecond =
            Double(new.origin.receivedBytes &- old.origin.receivedBytes) / seconds
        let (all, before) = (new.latency.all, old.latency.all)
        buckets = zip(all, before).map { $0 &- $1 }
        bounds = new.latency.bounds
        self.seconds = seconds
        responses = new.responses.merged(old.responses, &-)
        refused = new.errors.refused.merged(old.errors.refused, &-)
        failed = new.errors.origin.merged(old.errors.origin, &-)
    }

    /// The share of 5xx among the responses, from 0 to 1; `nil` without any.
    var serverErrorShare: Double? { responses.share(responses.serverErrors) }

    /// Adds the activity of another node, without response times if its buckets differ.
    mutating func add(_ other: TopRates) {
        requestsPerSecond += other.requestsPerSecond
        requests = requests + other.requests
        bytes = bytes + other.bytes
        sentPerSecond += other.sentPerSecond
        fetchesPerSecond += other.fetchesPerSecond
        receivedPerSecond += other.receivedPerSecond
        responses = responses.merged(other.responses, &+)
        refused = refused.merged(other.refused, &+)
        failed = failed.merged(other.failed, &+)
        // A node of another version may have other bounds.
        if bounds == other.bounds { buckets = zip(buckets, other.buckets).map { $0 &+ $1 } }
    }

    /// Returns a quantile of response times in microseconds; infinite above the last bound, and
    /// `nil` without responses.
    func latency(_ share: Double) -> Double? {
        LatencyHistogram.quantile(share, of: buckets, bounds: bounds)
    }
}
