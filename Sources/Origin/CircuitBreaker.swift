package import Ground

/// Leaves an origin alone after so many failures in succession, and tries it with one fetch now and
/// then.
///
/// A failure is of the origin or the way to it; what a client or this node did wrong counts for
/// nothing. Each trial that fails doubles the time until the next, up to ten times the first.
package struct CircuitBreaker: Hashable, Sendable {
    /// Whether fetches go to the origin.
    package enum State: Hashable, Sendable {
        /// They do. Becomes ``open(until:)``.
        case closed
        /// They do not; the first after `until` becomes the trial. Becomes ``halfOpen``.
        case open(until: Instant)
        /// One does. Becomes ``closed`` or ``open(until:)``.
        case halfOpen
    }

    /// What an arriving fetch is told.
    package enum Verdict: Hashable, Sendable {
        case go
        /// It alone goes, and what becomes of it decides.
        case trial
        /// Not now, but perhaps after so long.
        case refused(retryAfter: Interval)
    }

    package private(set) var state = State.closed
    /// Failures since the last whole answer.
    package private(set) var failures = 0
    /// How long it was open last; nil if it was closed since.
    private var lastPause: Interval?

    package init() {}

    /// How long no fetch goes to the origin; nil if the next one may.
    package func pause(now: Instant) -> Interval? {
        guard case .open(let until) = state, now < until else { return nil }
        return until - now
    }

    /// A fetch arrives.
    package mutating func arrived(now: Instant) -> Verdict {
        switch state {
        case .closed: return .go
        case .halfOpen: return .refused(retryAfter: .seconds(1))
        case .open(let until) where now < until: return .refused(retryAfter: until - now)
        case .open:
            state = .halfOpen
            return .trial
        }
    }

    /// The head of an answer came: the origin is there; true if that ends an open state.
    ///
    /// Whether it can give whole answers is not known yet, so that one more failure opens again.
    package mutating func answered(limits: CircuitLimits) -> Bool {
        guard state == .halfOpen else { return false }
        state = .closed
        failures = max(0, (limits.failures ?? 1) - 1)
        return true
    }

    /// A whole answer came.
    package mutating func succeeded() {
        guard state == .closed else { return }
        failures = 0
        lastPause = nil
    }

    /// A fetch failed by the origin's fault; true if the circuit is open from now on and was not
    /// before.
    package mutating func failed(limits: CircuitLimits, now: Instant) -> Bool {
        failures += 1
        guard let failuresMax = limits.failures else {
            self = CircuitBreaker()
            return false
        }
        switch state {
        case .open: return false
        case .closed where failures < failuresMax: return false
        case .closed, .halfOpen:
            let pause = lastPause.map { min($0 + $0, limits.pauseMax) } ?? limits.pause
            lastPause = pause
            state = .open(until: now + pause)
            return true
        }
    }

    /// The trial ended without saying anything of the origin; the next fetch is one.
    package mutating func trialAbandoned(now: Instant) {
        guard state == .halfOpen else { return }
        state = .open(until: now)
    }

    /// There is nothing to be remembered of the origin.
    package var isQuiet: Bool { state == .closed && failures == 0 && lastPause == nil }
}

/// When a ``CircuitBreaker`` opens, and for how long.
package struct CircuitLimits: Hashable, Sendable {
    /// Failures in succession; nil for never.
    package var failures: Int?
    /// The time until the first trial.
    package var pause: Interval

    package init(failures: Int?, pause: Interval) {
        self.failures = failures
        self.pause = pause
    }

    var pauseMax: Interval { Interval(nanoseconds: pause.nanoseconds * 10) }
}
