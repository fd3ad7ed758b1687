import Ground

/// Answers of an origin within ``span``, counted from the first that failed.
///
/// Invariant: all of it is zero or empty until an answer fails; `paths` holds no hash twice.
struct AnswerWindow: Hashable, Sendable {
    private var beganAt = Instant.zero
    private var answers = 0
    private(set) var failures = 0
    /// Hashes of the paths of which answers failed; no more than decide anything.
    private var paths: [UInt64] = []

    static let span = Interval.seconds(10)

    var isEmpty: Bool { failures == 0 }

    /// A whole answer came.
    mutating func succeeded(now: Instant) {
        guard !isEmpty else { return }
        guard now - beganAt < Self.span else { return self = AnswerWindow() }
        answers += 1
    }

    /// An answer failed that was of the path with this hash.
    mutating func failed(path: UInt64, limits: CircuitLimits, now: Instant) {
        if now - beganAt >= Self.span { self = AnswerWindow() }
        if isEmpty { beganAt = now }
        answers += 1
        failures += 1
        if paths.count < limits.pathsMin, !paths.contains(path) { paths.append(path) }
    }

    /// True if that speaks against the origin, and not against a few of its URLs.
    func isFailing(limits: CircuitLimits) -> Bool {
        guard let failuresMax = limits.failures else { return false }
        return failures >= failuresMax && 2 * failures >= answers
            && paths.count >= limits.pathsMin
    }
}
