package import Ground

/// Orders the connection attempts to an origin's addresses (Happy Eyeballs, RFC 8305 §4 and §5).
///
/// The next attempt starts when the last one has failed or has not connected within a short delay;
/// address families alternate. The first attempt to succeed wins and the caller cancels the others.
/// At most two attempts run at a time, so that a name with many dead addresses does not cost as
/// many connections. A value without I/O.
package struct HappyEyeballs: Sendable {
    /// The caller's next action after an event.
    package enum Step: Hashable, Sendable {
        /// Nothing to do until the next event or ``deadline``.
        case wait
        /// Start an attempt with this target; cancel the attempt `cancelling` if it is not `nil`.
        case connect(ConnectTarget, attempt: Int, cancelling: Int?)
        /// Every attempt has failed; carries the reason of the last failure.
        case allFailed(reason: String)
    }

    private var remainingTargets: ArraySlice<ConnectTarget>
    /// Attempts in progress, in the order in which they started.
    private var running: [Int] = []
    /// The attempts of ``running`` that are connected and in a TLS handshake.
    private var handshaking: Set<Int> = []
    private var attemptsStarted = 0
    private var nextAt = Instant.distantFuture
    /// The delay between two attempts that RFC 8305 §5 recommends.
    package static let attemptDelay = Interval.milliseconds(250)
    /// The delay after an attempt that has started a TLS handshake.
    ///
    /// A handshake takes round trips and work, and shows that the address is not dead.
    package static let handshakeDelay = Interval.seconds(2)

    /// Creates a race over `targets` in this order.
    package init(_ targets: [ConnectTarget]) {
        remainingTargets = targets[...]
    }

    /// Returns `addresses` in their order, with alternating families, starting with the family of
    /// the first address (RFC 8305 §4).
    package static func interleaved(_ addresses: [IPAddress]) -> [IPAddress] {
        guard let first = addresses.first else { return [] }
        let preferred = addresses.filter { $0.bitCount == first.bitCount }
        let others = addresses.filter { $0.bitCount != first.bitCount }
        var order: [IPAddress] = []
        for index in 0..<max(preferred.count, others.count) {
            if index < preferred.count { order.append(preferred[index]) }
            if index < others.count { order.append(others[index]) }
        }
        return order
    }

    /// When ``ticked(now:)`` is due; the distant future if no target is left.
    package var deadline: Instant { remainingTargets.isEmpty ? .distantFuture : nextAt }

    /// Starts the first attempt.
    package mutating func start(now: Instant) -> Step {
        next(now) ?? .allFailed(reason: "there is no address")
    }

    /// Records that an attempt has a connection and starts a TLS handshake.
    package mutating func attemptConnected(_ attempt: Int, now: Instant) {
        guard running.contains(attempt) else { return }
        handshaking.insert(attempt)
        nextAt = now + Self.handshakeDelay
    }

    /// True while an attempt is in a TLS handshake.
    package var isHandshaking: Bool { !handshaking.isEmpty }

    /// Records that an attempt failed, and starts the next one if a target is left; ignores an
    /// attempt given up.
    package mutating func attemptFailed(_ attempt: Int, reason: String, now: Instant) -> Step {
        guard let index = running.firstIndex(of: attempt) else { return .wait }
        running.remove(at: index)
        handshaking.remove(attempt)
        return next(now) ?? (running.isEmpty ? .allFailed(reason: reason) : .wait)
    }

    /// Starts the next attempt if ``deadline`` has passed.
    package mutating func ticked(now: Instant) -> Step {
        guard now >= deadline else { return .wait }
        return next(now) ?? .wait
    }

    /// Starts the next attempt, in place of the oldest if two are in progress; `nil` if no target
    /// is left.
    private mutating func next(_ now: Instant) -> Step? {
        guard let target = remainingTargets.popFirst() else { return nil }
        attemptsStarted += 1
        let givenUp = running.count < 2 ? nil : cancelOldestAttempt()
        running.append(attemptsStarted)
        nextAt = now + Self.attemptDelay
        return .connect(target, attempt: attemptsStarted, cancelling: givenUp)
    }
}

extension HappyEyeballs {
    /// Removes the oldest attempt, preferring one that is not yet in a handshake.
    private mutating func cancelOldestAttempt() -> Int {
        let index = running.firstIndex { !handshaking.contains($0) } ?? 0
        let attempt = running.remove(at: index)
        handshaking.remove(attempt)
        return attempt
    }
}

/// The target of a connection.
package enum ConnectTarget: Hashable, Sendable {
    /// This address, which the address guard has allowed.
    case address(IPAddress)
    /// The origin by its name, which a forward proxy resolves.
    case name
}
