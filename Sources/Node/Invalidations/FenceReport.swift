import Cluster
package import Ground
import Logging
import Synchronization

/// When the log is told that the fence is closed, and that it is open again.
package struct FenceReport: Sendable {
    package enum Line: Hashable, Sendable {
        case closed(for: Interval)
        case opened(after: Interval)
    }

    /// It is closed for a moment after every start.
    package static let patience = Interval.seconds(5)
    /// Between two lines on one that stays closed.
    package static let pause = Interval.seconds(60)

    private var toldAt: Instant?
    private var closedFor = Interval.zero

    package init() {}

    /// What is to be said now, to be asked now and then.
    ///
    /// `closedFor` is nil if the fence is open.
    package mutating func review(closedFor: Interval?, now: Instant) -> Line? {
        guard let closedFor else {
            defer { toldAt = nil }
            return toldAt.map { _ in .opened(after: self.closedFor) }
        }
        self.closedFor = closedFor
        guard closedFor >= Self.patience, toldAt.map({ now >= $0 + Self.pause }) ?? true else {
            return nil
        }
        toldAt = now
        return .closed(for: closedFor)
    }
}

extension NodeCore {
    /// Says that this node is fenced, whom it misses, and what can be done; to be called by one
    /// loop now and then.
    func reportFence(now: Instant) {
        guard hub != nil else { return }
        let line = fenceReport.withLock {
            $0.review(closedFor: fence.closedFor(at: now), now: now)
        }
        // Whoever has found no cluster says so elsewhere.
        guard let line, desk.isCounting else { return }
        switch line {
        case .closed(let time):
            let counted = desk.table(at: now).filter(\.isCounted)
            let silent = counted.filter { $0.contactAge.map { $0 >= fence.fence } ?? true }
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
