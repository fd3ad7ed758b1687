package import Ground

/// A circuit breaker: stops fetches to an origin that fails, and probes it with a few trial
/// fetches.
///
/// A failed connection counts against the origin regardless of who requested what: enough
/// consecutive failures open the circuit. A failed response may be the fault of one URL, which one
/// client can request again and again: it counts only with others. Failed responses open the
/// circuit if there are enough within a short window, if they are at least half of all responses,
/// and if they concern several paths. Failures caused by a client or by this node do not count.
/// Each time the trials fail, the open interval doubles, up to ten times the first. A value without
/// a lock; see ``OriginCoordinator``.
package struct CircuitBreaker: Hashable, Sendable {
    /// The state of the circuit.
    package enum State: Hashable, Sendable {
        /// Fetches are allowed. Becomes ``open(until:)``.
        case closed
        /// Fetches are refused; the first one after `until` becomes a trial. Becomes ``halfOpen``.
        case open(until: Instant)
        /// A few trial fetches are allowed. Becomes ``closed`` or ``open(until:)``.
        case halfOpen
    }

    /// The decision about a new fetch.
    package enum Admission: Hashable, Sendable {
        /// The fetch may proceed.
        case allowed
        /// The fetch may proceed as a trial; its outcome decides the next state.
        case trial
        /// The fetch is refused; the next one may be admitted after this interval.
        case refused(retryAfter: Interval)
    }

    /// A failure that counts against the origin.
    package enum Failure: Hashable, Sendable {
        /// No connection could be established.
        case connection
        /// The request was sent and no complete response arrived; `path` is a hash of the path
        /// without its query.
        case response(path: UInt64)
    }

    /// The current state.
    package private(set) var state = State.closed
    /// Consecutive connection attempts that failed.
    private var connectionFailures = 0
    private var failureWindow = FailureWindow()
    /// Trial fetches in progress while the circuit is half open.
    private var trials = 0
    /// Hashes of the paths of trials whose responses failed.
    private var failedTrials: [UInt64] = []
    /// The last open interval; `nil` if the circuit has closed since.
    private var lastOpenInterval: Interval?

    /// Creates a closed circuit without history.
    package init() {}

    /// Number of failures that led to the present state, or that count towards the next.
    package var failures: Int { max(connectionFailures, failureWindow.failures) }

    /// Returns the rest of the open interval, in which no fetch is admitted; `nil` if it has passed
    /// or the circuit is not open.
    package func remainingOpenInterval(now: Instant) -> Interval? {
        guard case .open(let until) = state, now < until else { return nil }
        return until - now
    }

    /// Decides whether a new fetch may proceed; after the open interval, the circuit becomes half
    /// open.
    package mutating func admit(limits: CircuitLimits, now: Instant) -> Admission {
        switch state {
        case .closed: return .allowed
        case .open(let until) where now < until: return .refused(retryAfter: until - now)
        case .open:
            state = .halfOpen
            trials = 1
            failedTrials = []
            return .trial
        case .halfOpen where trials + failedTrials.count < limits.trialsMax:
            trials += 1
            return .trial
        case .halfOpen: return .refused(retryAfter: .seconds(1))
        }
    }

    /// Records that a response head arrived, which shows that the origin works.
    ///
    /// - Returns: true if this closes a half-open circuit.
    package mutating func responseReceived() -> Bool {
        connectionFailures = 0
        guard state == .halfOpen else { return false }
        state = .closed
        failureWindow = FailureWindow()
        return true
    }

    /// Records that a complete response arrived; without effect unless the circuit is closed.
    package mutating func recordSuccess(now: Instant) {
        guard state == .closed else { return }
        connectionFailures = 0
        lastOpenInterval = nil
        failureWindow.recordSuccess(now: now)
    }

    /// Records a failure of the origin; while the circuit is half open, call it only for trials.
    ///
    /// - Returns: true if this opens the circuit.
    package mutating func recordFailure(
        _ failure: Failure, limits: CircuitLimits, now: Instant
    ) -> Bool {
        guard let failuresMax = limits.failures else {
            self = CircuitBreaker()
            return false
        }
        switch (state, failure) {
        case (.open, _): return false
        case (.closed, .connection):
            connectionFailures += 1
            guard connectionFailures >= failuresMax else { return false }
        case (.closed, .response(let path)):
            connectionFailures = 0
            failureWindow.recordFailure(path: path, limits: limits, now: now)
            guard failureWindow.isFailing(limits: limits) else { return false }
        case (.halfOpen, .connection): connectionFailures += 1
        case (.halfOpen, .response(let path)):
            trials -= 1
            // One URL that fails does not show that the origin fails, however often it is tried.
            guard !failedTrials.contains(path) else { return false }
            failedTrials.append(path)
            guard failedTrials.count >= limits.trialsMax else { return false }
        }
        let pause =
            lastOpenInterval.map { min($0 + $0, limits.openIntervalMax) } ?? limits.openInterval
        lastOpenInterval = pause
        state = .open(until: now + pause)
        return true
    }

    /// Records that a trial ended without an outcome for the origin; another fetch may become a
    /// trial.
    package mutating func trialAbandoned() {
        if state == .halfOpen { trials -= 1 }
    }

    /// True if the circuit is closed and no failure is remembered.
    package var hasNoHistory: Bool {
        state == .closed && connectionFailures == 0 && failureWindow.isEmpty
            && lastOpenInterval == nil
    }
}

/// The number of failures that opens a ``CircuitBreaker``, and the length of its first open
/// interval.
package struct CircuitLimits: Hashable, Sendable {
    /// Failures that open the circuit: consecutive connection attempts, or responses within the
    /// window.
    ///
    /// `nil` disables the circuit breaker.
    package var failures: Int?
    /// The time from opening to the first trial; it doubles each time the trials fail, up to ten
    /// times this value.
    package var openInterval: Interval

    /// Creates limits from their parts.
    package init(failures: Int?, openInterval: Interval) {
        self.failures = failures
        self.openInterval = openInterval
    }

    /// Minimum number of distinct paths among the failed responses.
    var pathsMin: Int { min(5, failures ?? 5) }
    /// Maximum number of trials at a time, and number of distinct failed paths that ends the
    /// trials.
    var trialsMax: Int { min(3, failures ?? 3) }
    /// The longest open interval, however often the trials fail.
    var openIntervalMax: Interval { Interval(nanoseconds: openInterval.nanoseconds * 10) }
}

/// Counts of an origin's responses within ``span``, from the first failure on.
///
/// Invariant: everything is zero or empty until a response fails; `paths` holds no hash twice.
struct FailureWindow: Hashable, Sendable {
    /// When the first failure of the window happened.
    private var startedAt = Instant.zero
    /// Complete and failed responses in the window.
    private var responses = 0
    private(set) var failures = 0
    /// Hashes of the paths of failed responses; at most as many as the decision needs.
    private var paths: [UInt64] = []

    /// The length of the window.
    static let span = Interval.seconds(10)

    var isEmpty: Bool { failures == 0 }

    /// Records that a complete response arrived.
    mutating func recordSuccess(now: Instant) {
        guard !isEmpty else { return }
        guard now - startedAt < Self.span else { return self = FailureWindow() }
        responses += 1
    }

    /// Records that a response for the path with this hash failed.
    mutating func recordFailure(path: UInt64, limits: CircuitLimits, now: Instant) {
        if now - startedAt >= Self.span { self = FailureWindow() }
        if isEmpty { startedAt = now }
        responses += 1
        failures += 1
        if paths.count < limits.pathsMin, !paths.contains(path) { paths.append(path) }
    }

    /// True if the failures count against the origin as a whole, not against a few of its URLs.
    func isFailing(limits: CircuitLimits) -> Bool {
        guard let failuresMax = limits.failures else { return false }
        return failures >= failuresMax && 2 * failures >= responses
            && paths.count >= limits.pathsMin
    }
}
