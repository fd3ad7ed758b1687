import Admin
package import Ground

/// One node that `nuthatch top` asks: what it said last, and how that has gone on.
package struct TopNode: Sendable {
    /// What it said at one moment.
    struct Sample: Sendable {
        var report: StatisticsReport
        /// When it came, on the clock of who watches.
        var at: Instant
    }

    /// What happened from one answer to the next.
    struct Point: Sendable {
        var requestsPerSecond: Double
        var counts: SourceCounts
    }

    /// Why it does not answer.
    package struct Failure: Hashable, Sendable {
        package var reason: String
        package var since: Instant
    }

    /// Where it is asked, as the operator wrote it.
    package let endpoint: String
    /// Known once it has answered.
    package private(set) var id: String?
    package private(set) var failure: Failure?
    /// The newest last; of one process.
    private(set) var samples: [Sample] = []
    /// One for each time that it was asked, nil for no answer; the newest last.
    private(set) var points: [Point?] = []
    var hot: [HotReport.Entry] = []
    var purges: [ReceiptReport] = []

    static let pointsMax = 600
    /// Figures are of so long.
    static let window = Interval.seconds(5)
    private static let samplesMax = 64

    package init(place: String, id: String? = nil) {
        self.endpoint = place
        self.id = id
    }

    /// What it said last; nil while it does not answer.
    package var report: StatisticsReport? { failure == nil ? samples.last?.report : nil }

    mutating func statisticsReceived(_ report: StatisticsReport, at now: Instant) {
        failure = nil
        id = report.members.first(where: \.isSelf)?.node ?? id
        // Of another process nothing can be subtracted.
        if let last = samples.last?.report, report.isFromAnotherProcess(than: last) { samples = [] }
        let point = samples.last.map { Self.point(from: $0.report, to: report) }
        appendPoint(point)
        samples.append(Sample(report: report, at: now))
        if samples.count > Self.samplesMax { samples.removeFirst() }
    }

    mutating func identify(_ id: String) { self.id = id }

    mutating func requestFailed(_ why: String, at now: Instant) {
        failure = Failure(reason: why, since: failure?.since ?? now)
        appendPoint(nil)
    }

    private mutating func appendPoint(_ point: Point?) {
        points.append(point)
        if points.count > Self.pointsMax { points.removeFirst() }
    }

    private static func point(from old: StatisticsReport, to new: StatisticsReport) -> Point {
        let seconds = Double(new.atMilliseconds &- old.atMilliseconds) / 1000
        let counts = new.requests - old.requests
        return Point(requestsPerSecond: Double(counts.all) / seconds, counts: counts)
    }

    /// What it did in the last ``window``, or in what there is of it; nil if it does not answer, or
    /// has answered once.
    var rates: TopRates? {
        guard failure == nil, let last = samples.last, samples.count > 1 else { return nil }
        let first =
            samples.dropLast().first { last.at - $0.at <= Self.window }
            ?? samples[samples.count - 2]
        return TopRates(from: first.report, to: last.report)
    }
}

/// What nodes did in some time.
struct TopRates: Sendable {
    var requestsPerSecond = 0.0
    var requests: SourceCounts
    var bytes: SourceCounts
    var sentPerSecond: Double
    var fetchesPerSecond: Double
    var receivedPerSecond: Double
    var buckets: [UInt64]
    let bounds: [UInt64]

    init(from old: StatisticsReport, to new: StatisticsReport) {
        let seconds = Double(new.atMilliseconds &- old.atMilliseconds) / 1000
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
    }

    /// Both together.
    mutating func add(_ other: TopRates) {
        requestsPerSecond += other.requestsPerSecond
        requests = requests + other.requests
        bytes = bytes + other.bytes
        sentPerSecond += other.sentPerSecond
        fetchesPerSecond += other.fetchesPerSecond
        receivedPerSecond += other.receivedPerSecond
        // Of another version they may be others.
        if bounds == other.bounds { buckets = zip(buckets, other.buckets).map { $0 &+ $1 } }
    }

    func latency(_ share: Double) -> Double? {
        LatencyHistogram.quantile(share, of: buckets, bounds: bounds)
    }
}
