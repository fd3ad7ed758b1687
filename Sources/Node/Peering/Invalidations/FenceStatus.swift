import Cluster
package import Ground
import Logging
import Serving
import Synchronization

/// Whether this node is proven current, for whoever decides what may be served, on any thread.
///
/// What it says is a comparison with the clock: to be asked at each decision, and never kept.
final class FenceStatus: Sendable {
    /// For how long after the origin has validated it an entry is used while the fence is closed.
    let interval: Interval
    private let currentUntil: Atomic<Int64>
    private let closedAt: Atomic<Int64>

    /// Closed since `now`; nil for `fence` keeps it open for ever.
    init(_ fence: Interval?, now: Instant) {
        self.interval = fence ?? .zero
        let until = fence == nil ? Instant.distantFuture : .zero
        currentUntil = Atomic(until.nanoseconds)
        closedAt = Atomic((fence == nil ? .distantFuture : now).nanoseconds)
    }

    var window: FenceWindow {
        get {
            // In this order: who reads between two writes takes a fence that has just opened for
            // one that closes later.
            let until = Instant(nanoseconds: currentUntil.load(ordering: .acquiring))
            let closed = Instant(nanoseconds: closedAt.load(ordering: .acquiring))
            return FenceWindow(currentUntil: until, closedAt: closed)
        }
        set {
            closedAt.store(newValue.closedAt.nanoseconds, ordering: .releasing)
            currentUntil.store(newValue.currentUntil.nanoseconds, ordering: .releasing)
        }
    }

    /// Nothing durable at a majority for longer than the fence is missing here.
    @inline(__always)
    func isOpen(at now: Instant) -> Bool {
        now.nanoseconds < currentUntil.load(ordering: .acquiring)
    }

    /// For how long it has been closed; nil if it is open.
    func closedDuration(at now: Instant) -> Interval? {
        isOpen(at: now) ? nil : max(.zero, now - window.closedAt)
    }

    /// The facts as they count at `now`.
    func effectiveFacts(_ facts: EntryMetadata, now: Instant) -> EntryMetadata {
        isOpen(at: now) ? facts : facts.fenced(by: window, interval, now: now)
    }

    /// What the origin validated then may not be given at `now`.
    func isExcluded(_ validatedAt: Instant, now: Instant) -> Bool {
        guard !isOpen(at: now) else { return false }
        let use = FenceDecision.decide(
            now: now, window: window, validatedAt: validatedAt, fence: interval, staleIfError: nil)
        if case .revalidate = use { return true }
        return false
    }

    /// ``Serving/judge(_:for:now:)``, with the facts as they count.
    @inline(__always)
    func evaluate(_ facts: EntryMetadata, for request: RequestTraits, now: Instant) -> HitDecision {
        guard isOpen(at: now) else {
            return Serving.decideHit(self.effectiveFacts(facts, now: now), for: request, now: now)
        }
        return Serving.decideHit(facts, for: request, now: now)
    }
}

/// When the log is told that the fence is closed, and that it is open again.
package struct FenceLogLimiter: Sendable {
    package enum Event: Hashable, Sendable {
        case closed(for: Interval)
        case opened(after: Interval)
    }

    /// It is closed for a moment after every start.
    package static let initialDelay = Interval.seconds(5)
    /// Between two lines on one that stays closed.
    package static let repeatInterval = Interval.seconds(60)

    private var lastLoggedAt: Instant?
    private var closedFor = Interval.zero

    package init() {}

    /// What is to be said now, to be asked now and then.
    ///
    /// `closedFor` is nil if the fence is open.
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

extension NodeCore {
    /// Says that this node is fenced, whom it misses, and what can be done; to be called by one
    /// loop now and then.
    func logFenceState(now: Instant) {
        guard hub != nil else { return }
        let line = fenceReport.withLock {
            $0.nextEvent(closedFor: fence.closedDuration(at: now), now: now)
        }
        // Whoever has found no cluster says so elsewhere.
        guard let line, purges.hasVoters else { return }
        switch line {
        case .closed(let time):
            let counted = purges.voterTable(at: now).filter(\.isVoter)
            let silent = counted.filter { $0.contactAge.map { $0 >= fence.interval } ?? true }
            logger.warning(
                "fenced: this node cannot prove that it knows every purge",
                metadata: [
                    "for_ms": .stringConvertible(time.milliseconds),
                    "counted": .stringConvertible(counted.count),
                    "silent": .array(silent.map { .string("\($0.id)") }),
                    "until_then": "each entry is held against its origin once per fence",
                    "if_they_are_gone_for_good": "nuthatch members forget, or members recover",
                ])
        case .opened(let time):
            logger.notice(
                "no longer fenced", metadata: ["after_ms": .stringConvertible(time.milliseconds)])
        }
    }
}
