package import Ground

/// Leaves an origin alone while it fails, and tries it with a few fetches now and then.
///
/// A connection that fails speaks against the origin, whoever asked for what: so many in succession
/// open the circuit. An answer that fails may be the fault of one URL, which one client can ask for
/// again and again: it opens the circuit only together with others, if they are so many within a
/// short time, half of all that were asked for, and of several paths. What a client or this node
/// did wrong counts for nothing. Each time that the trials fail doubles the time until the next, up
/// to ten times the first.
package struct CircuitBreaker: Hashable, Sendable {
    /// Whether fetches go to the origin.
    package enum State: Hashable, Sendable {
        /// They do. Becomes ``open(until:)``.
        case closed
        /// They do not; the first after `until` becomes a trial. Becomes ``halfOpen``.
        case open(until: Instant)
        /// A few do. Becomes ``closed`` or ``open(until:)``.
        case halfOpen
    }

    /// What an arriving fetch is told.
    package enum Admission: Hashable, Sendable {
        case allowed
        /// It is one of few that go, and what becomes of them decides.
        case trial
        /// Not now, but perhaps after so long.
        case refused(retryAfter: Interval)
    }

    /// What failed by the origin's fault.
    package enum Failure: Hashable, Sendable {
        /// No connection was had.
        case connection
        /// The request was sent, and no whole answer came; `path` is a hash of what was asked for,
        /// without its query.
        case response(path: UInt64)
    }

    package private(set) var state = State.closed
    /// Connections that failed since one was had.
    private var connectionFailures = 0
    private var failureWindow = FailureWindow()
    /// Fetches that try the origin while the circuit is half open.
    private var trials = 0
    /// Hashes of the paths of trials whose answers failed.
    private var failedTrials: [UInt64] = []
    /// How long it was open last; nil if it was closed since.
    private var lastOpenInterval: Interval?

    package init() {}

    /// Failures that led to the present state, or may lead to the next.
    package var failures: Int { max(connectionFailures, failureWindow.failures) }

    /// How long no fetch goes to the origin; nil if the next one may.
    package func remainingOpenInterval(now: Instant) -> Interval? {
        guard case .open(let until) = state, now < until else { return nil }
        return until - now
    }

    /// A fetch arrives.
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

    /// The head of an answer came: the origin is there; true if that ends an open state.
    package mutating func responseReceived() -> Bool {
        connectionFailures = 0
        guard state == .halfOpen else { return false }
        state = .closed
        failureWindow = FailureWindow()
        return true
    }

    /// A whole answer came.
    package mutating func recordSuccess(now: Instant) {
        guard state == .closed else { return }
        connectionFailures = 0
        lastOpenInterval = nil
        failureWindow.recordSuccess(now: now)
    }

    /// A fetch failed by the origin's fault, while the circuit is half open a trial; true if the
    /// circuit is open from now on and was not before.
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
            // One URL that fails is not the origin, however often it is tried.
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

    /// A trial ended without saying anything of the origin; another fetch may be one.
    package mutating func trialAbandoned() {
        if state == .halfOpen { trials -= 1 }
    }

    /// There is nothing to be remembered of the origin.
    package var hasNoHistory: Bool {
        state == .closed && connectionFailures == 0 && failureWindow.isEmpty
            && lastOpenInterval == nil
    }
}

/// When a ``CircuitBreaker`` opens, and for how long.
package struct CircuitLimits: Hashable, Sendable {
    /// Connections in succession that fail, or answers within a short time; nil for never.
    package var failures: Int?
    /// The time until the first trial.
    package var openInterval: Interval

    package init(failures: Int?, pause: Interval) {
        self.failures = failures
        self.openInterval = pause
    }

    /// Paths of which answers must fail.
    var pathsMin: Int { min(5, failures ?? 5) }
    /// Fetches that try the origin at one time, and paths of which their answers may fail.
    var trialsMax: Int { min(3, failures ?? 3) }
    var openIntervalMax: Interval { Interval(nanoseconds: openInterval.nanoseconds * 10) }
}

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
