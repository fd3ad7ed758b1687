package import Ground

/// Tries the addresses of an origin so that a dead one costs little: one after the other, the next
/// when the last has failed or has not answered for a moment, families in turn (RFC 8305 §4, §5).
///
/// The first attempt that succeeds wins; the shell gives up the others. No more than two run at one
/// time, so that a name with many dead addresses does not cost as many connections.
package struct HappyEyeballs: Sendable {
    /// What the shell does after an event.
    package enum Step: Hashable, Sendable {
        case wait
        /// Connects, giving up the other attempt if there is one.
        case connect(ConnectTarget, attempt: Int, cancelling: Int?)
        /// Every attempt has failed; the last one's reason.
        case allFailed(reason: String)
    }

    private var remainingTargets: ArraySlice<ConnectTarget>
    /// In the order in which they began.
    private var running: [Int] = []
    /// Those of ``running`` that have a connection and agree on TLS.
    private var handshaking: Set<Int> = []
    private var attemptsStarted = 0
    private var nextAt = Instant.distantFuture
    /// The time between two attempts that RFC 8305 §5 recommends.
    package static let attemptDelay = Interval.milliseconds(250)
    /// The same behind one that has a connection and agrees on TLS, which takes round trips and
    /// work: the address is not dead.
    package static let handshakeDelay = Interval.seconds(2)

    /// A race over `targets` in this order.
    package init(_ targets: [ConnectTarget]) {
        remainingTargets = targets[...]
    }

    /// `addresses` in their order, but with the families in turn, beginning with the first one's
    /// (RFC 8305 §4).
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

    /// When ``ticked(now:)`` is due.
    package var deadline: Instant { remainingTargets.isEmpty ? .distantFuture : nextAt }

    /// Begins with the first target.
    package mutating func start(now: Instant) -> Step {
        next(now) ?? .allFailed(reason: "there is no address")
    }

    /// An attempt has a connection, and TLS is to be agreed on.
    package mutating func attemptConnected(_ attempt: Int, now: Instant) {
        guard running.contains(attempt) else { return }
        handshaking.insert(attempt)
        nextAt = now + Self.handshakeDelay
    }

    /// True while TLS is being agreed on.
    package var isHandshaking: Bool { !handshaking.isEmpty }

    /// An attempt failed.
    package mutating func attemptFailed(_ attempt: Int, reason: String, now: Instant) -> Step {
        guard let index = running.firstIndex(of: attempt) else { return .wait }
        running.remove(at: index)
        handshaking.remove(attempt)
        return next(now) ?? (running.isEmpty ? .allFailed(reason: reason) : .wait)
    }

    /// The time of ``deadline`` may have come.
    package mutating func ticked(now: Instant) -> Step {
        guard now >= deadline else { return .wait }
        return next(now) ?? .wait
    }

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
    /// The one that began first, before any that is further.
    private mutating func cancelOldestAttempt() -> Int {
        let index = running.firstIndex { !handshaking.contains($0) } ?? 0
        let attempt = running.remove(at: index)
        handshaking.remove(attempt)
        return attempt
    }
}

/// Where a connection goes.
package enum ConnectTarget: Hashable, Sendable {
    /// To this address, which the guard has allowed.
    case address(IPAddress)
    /// To the origin by its name, which a forward proxy looks up.
    case name
}
