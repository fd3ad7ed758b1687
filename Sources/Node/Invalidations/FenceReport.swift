import Cluster
package import Ground
import Logging
import Synchronization

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
