import Ground

/// The observations of one run of an invalidation simulation.
struct SimulationReport: Sendable {
    var trace = TraceDigest()
    private(set) var history: [String] = []
    /// The first broken guarantee; `nil` if none.
    private(set) var violation: String?
    /// How often each goal was reached, by raw value.
    var reached = Array(repeating: 0, count: InvalidationCoverageGoal.allCases.count)
    /// The number of reads served.
    var reads = 0
    /// The number of requests to the origin.
    var originFetches = 0
    /// How often a node made everything stale because records are no longer available.
    var floorsApplied = 0
    /// The requests to the origin in the final phase, by key.
    var quiescentFetches: [Int]
    /// The reads served in the final phase, by key; some requests may have waited since the faults.
    var quiescentReads: [Int]

    init(keys: Int) {
        quiescentFetches = Array(repeating: 0, count: keys)
        quiescentReads = quiescentFetches
    }

    /// Appends a line to the history.
    mutating func log(_ line: String, at now: Instant) {
        if history.count > 400 { history.removeFirst(200) }
        history.append("\(now.nanoseconds / 1_000) us: \(line)")
    }

    /// Records a broken guarantee, which ends the run; only the first counts.
    mutating func fail(_ law: String, at now: Instant) {
        guard violation == nil else { return }
        violation = "\(law), at \(now.nanoseconds / 1_000) us"
        log("VIOLATION \(law)", at: now)
    }
}
