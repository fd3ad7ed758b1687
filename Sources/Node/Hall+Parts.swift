import Ground
import HTTPRules
import Origin
import Serving
import Store
import Synchronization
import Telemetry

/// What is fetched where a part is wanted of what is not stored.
extension Hall {
    /// What is fetched where the one who caused `run` wants a part of what neither memory nor disk
    /// has; nil if the whole is wanted.
    func partQuestion(of run: FillRun) -> PartTable.Question? {
        guard run.stale == nil, run.query.wantsPart(rangesMax: settings.rangesMax) else {
            return nil
        }
        let now = SystemClock.now()
        switch node.parts.withLock({ $0.wanted(run.hash, now: now) }) {
        case .whole where mayFetchUnread(for: run.client):
            counters.add(.originRangesAgain)
            return .whole
        case .whole: counters.add(.originRangesLimited)
        case .part: counters.add(.originRangesPassed)
        }
        return .part
    }

    /// The origin's answer to `run` tells what the whole is of which somebody wanted a part; it is
    /// fetched if it is small.
    func learned(_ whole: PartTable.Whole, by run: FillRun) {
        node.parts.withLock { $0.learned(whole, of: run.hash) }
        guard run.view.isPart, whole.isSmall, case .storable(let bytes) = whole else { return }
        guard takeUnread(bytes, for: run.client) else {
            return counters.add(.originRangesLimited)
        }
        counters.add(.originRangesSmall)
        fetch(
            run.query.inBackground, nil, cause: run.cause, client: run.client,
            now: SystemClock.now(), isEnough: \.isUsable)
    }

    /// True if more may be fetched for `client` than is read.
    func mayFetchUnread(for client: ShareHolder?) -> Bool {
        node.unread.withLock { $0.hasLeft(for: client, now: SystemClock.now()) }
    }

    /// Has `client` answer for bytes that are fetched for it and that nobody reads; false if it has
    /// as many as it may have.
    func takeUnread(_ bytes: UInt64, for client: ShareHolder?) -> Bool {
        let isTaken = node.unread.withLock {
            $0.take(bytes, for: client, now: SystemClock.now())
        }
        if isTaken { counters.add(.originUnreadBytes, Int(clamping: bytes)) }
        return isTaken
    }
}
