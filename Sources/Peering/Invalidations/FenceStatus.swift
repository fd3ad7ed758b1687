package import Cluster
package import Ground
import Logging
package import Serving
import Synchronization

/// The state of the fence: whether this node has recently proven that it is current.
///
/// Thread-safe. Each result is a comparison with the clock, so it must be requested for each
/// decision and never stored.
package final class FenceStatus: Sendable {
    /// The fence's duration: how long after its validation by the origin an entry is used while the
    /// fence is closed.
    package let interval: Interval
    /// The boot-clock time in nanoseconds until which the fence is open.
    private let currentUntil: Atomic<Int64>
    /// The boot-clock time in nanoseconds at which the fence closed last.
    private let closedAt: Atomic<Int64>

    /// Creates a fence that has been closed since `now`; `nil` for `fence` keeps it open for ever.
    package init(_ fence: Interval?, now: Instant) {
        self.interval = fence ?? .zero
        let until = fence == nil ? Instant.distantFuture : .zero
        currentUntil = Atomic(until.nanoseconds)
        closedAt = Atomic((fence == nil ? .distantFuture : now).nanoseconds)
    }

    /// The interval in which the fence is open, and the time of its last closing.
    package var window: FenceWindow {
        get {
            // In this order: a reader between two writes takes a fence that has just opened for one
            // that closes later.
            let until = Instant(nanoseconds: currentUntil.load(ordering: .acquiring))
            let closed = Instant(nanoseconds: closedAt.load(ordering: .acquiring))
            return FenceWindow(currentUntil: until, closedAt: closed)
        }
        set {
            closedAt.store(newValue.closedAt.nanoseconds, ordering: .releasing)
            currentUntil.store(newValue.currentUntil.nanoseconds, ordering: .releasing)
        }
    }

    /// Returns true if the node is current: it lacks no invalidation that has been durable at a
    /// majority for longer than the fence's duration.
    @inline(__always)
    package func isOpen(at now: Instant) -> Bool {
        now.nanoseconds < currentUntil.load(ordering: .acquiring)
    }

    /// Returns how long the fence has been closed; `nil` if it is open.
    package func closedDuration(at now: Instant) -> Interval? {
        isOpen(at: now) ? nil : max(.zero, now - window.closedAt)
    }

    /// Returns the metadata with the freshness that the fence leaves at `now`; unchanged while the
    /// fence is open.
    package func effectiveFacts(_ facts: EntryMetadata, now: Instant) -> EntryMetadata {
        isOpen(at: now) ? facts : facts.fenced(by: window, interval, now: now)
    }

    /// Returns true if the closed fence forbids to serve at `now` a response that the origin
    /// validated at `validatedAt`; false while the fence is open.
    package func isExcluded(_ validatedAt: Instant, now: Instant) -> Bool {
        guard !isOpen(at: now) else { return false }
        let use = FenceDecision.decide(
            now: now, window: window, validatedAt: validatedAt, fence: interval, staleIfError: nil)
        if case .revalidate = use { return true }
        return false
    }

    /// Returns the decision of `Serving.decideHit` on the metadata that is effective at `now`.
    @inline(__always)
    package func evaluate(_ facts: EntryMetadata, for request: RequestTraits, now: Instant)
        -> HitDecision
    {
        guard isOpen(at: now) else {
            return Serving.decideHit(self.effectiveFacts(facts, now: now), for: request, now: now)
        }
        return Serving.decideHit(facts, for: request, now: now)
    }
}

/// The rate limit of log lines about a closed fence.
package struct FenceLogLimiter: Sendable {
    /// An event to be logged.
    package enum Event: Hashable, Sendable {
        /// The fence has been closed for this time.
        case closed(for: Interval)
        /// The fence is open again; the time is how long it had been closed when last seen closed.
        case opened(after: Interval)
    }

    /// The time for which the fence must be closed before it is logged; it is closed for a moment
    /// after every start.
    package static let initialDelay = Interval.seconds(5)
    /// The interval between two lines while the fence stays closed.
    package static let repeatInterval = Interval.seconds(60)

    /// The time of the last line; `nil` if the fence was not reported as closed.
    private var lastLoggedAt: Instant?
    /// How long the fence had been closed when it was last seen closed.
    private var closedFor = Interval.zero

    /// Creates a limiter that has logged nothing.
    package init() {}

    /// Returns the event to log now, `nil` for none; called periodically.
    ///
    /// An opening is logged only if the closing was. `closedFor` is how long the fence has been
    /// closed, and `nil` if it is open.
    package mutating func nextEvent(closedFor: Interval?, now: Instant) -> Event? {
        guard let closedFor else {
            defer { lastLoggedAt = nil }
            return lastLoggedAt.map { _ in .opened(after: self.closedFor) }
        }
        self.closedFor = closedFor
        guard closedFor >= Self.initialDelay,
            lastLoggedAt.map({ now >= $0 + Self.repeatInterval }) ?? true
        else {
            return nil
        }
        lastLoggedAt = now
        return .closed(for: closedFor)
    }
}

extension FenceLogLimiter.Event {
    /// Logs the event; a closed fence with the voters that were silent for `interval`, and the
    /// remedies.
    func log(
        to logger: Logger, voters: [FenceCoordinator.MemberStatus], silentFor interval: Interval
    ) {
        switch self {
        case .closed(let time):
            let silent = voters.filter { $0.contactAge.map { $0 >= interval } ?? true }
            logger.warning(
                "fenced: this node cannot prove that it knows every purge",
                metadata: [
                    "for_ms": .stringConvertible(time.milliseconds),
                    "counted": .stringConvertible(voters.count),
                    "silent": .array(silent.map { .string("\($0.id)") }),
                    "until_then": "each entry is revalidated at its origin once per fence",
                    "if_they_are_gone_for_good": "nuthatch members forget, or members recover",
                ])
        case .opened(let time):
            logger.notice(
                "no longer fenced", metadata: ["after_ms": .stringConvertible(time.milliseconds)])
        }
    }
}
