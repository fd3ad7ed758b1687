import Ground

/// Answers of an origin within ``span``, counted from the first that failed.
///
/// Invariant: all of it is zero or empty until an answer fails; `paths` holds no hash twice.
struct FailureWindow: Hashable, Sendable {
    private var startedAt = Instant.zero
    private var responses = 0
    private(set) var failures = 0
    /// Hashes of the paths of which answers failed; no more than decide anything.
    private var paths: [UInt64] = []

    static let span = Interval.seconds(10)

    var isEmpty: Bool { failures == 0 }

    /// A whole answer came.
    mutating func recordSuccess(now: Instant) {
        guard !isEmpty else { return }
        guard now - startedAt < Self.span else { return self = FailureWindow() }
        responses += 1
    }

    /// An answer failed that was of the path with this hash.
    mutating func recordFailure(path: UInt64, limits: CircuitLimits, now: Instant) {
        if now - startedAt >= Self.span { self = FailureWindow() }
        if isEmpty { startedAt = now }
        responses += 1
        failures += 1
        if paths.count < limits.pathsMin, !paths.contains(path) { paths.append(path) }
    }

    /// True if that speaks against the origin, and not against a few of its URLs.
    func isFailing(limits: CircuitLimits) -> Bool {
        guard let failuresMax = limits.failures else { return false }
        return failures >= failuresMax && 2 * failures >= responses
            && paths.count >= limits.pathsMin
    }
}
