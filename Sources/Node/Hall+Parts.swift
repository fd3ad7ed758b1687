import Ground
import HTTPRules
import Origin
import Serving
import Store
import Synchronization
import Telemetry

/// What is fetched where a part is wanted of what is not stored.
extension EventLoopContext {
    /// What is fetched where the one who caused `run` wants a part of what neither memory nor disk
    /// has; nil if the whole is wanted.
    func fetchScope(of run: ActiveFetch) -> RangeRequestHistory.FetchScope? {
        guard run.staleEntry == nil, run.siteRequest.requestsPart(rangesMax: settings.rangesMax)
        else {
            return nil
        }
        let now = SystemClock.now()
        switch node.parts.withLock({ $0.recordPartRequest(run.hash, now: now) }) {
        case .whole where mayFetchUnread(for: run.client):
            counters.add(.originRangesRepeated)
            return .whole
        case .whole: counters.add(.originRangesLimited)
        case .part: counters.add(.originRangesPartial)
        }
        return .part
    }

    /// The origin's answer to `run` tells what the whole is of which somebody wanted a part; it is
    /// fetched if it is small.
    func recordRepresentation(_ whole: RangeRequestHistory.Storability, by run: ActiveFetch) {
        node.parts.withLock { $0.recordStorability(whole, of: run.hash) }
        guard run.snapshot.isPart, whole.isSmall, case .storable(let bytes) = whole else { return }
        guard chargeUnread(bytes, for: run.client) else {
            return counters.add(.originRangesLimited)
        }
        counters.add(.originRangesSmall)
        fetchInBackground(
            run.siteRequest.backgroundVariant, nil, cause: run.correlation, client: run.client,
            now: SystemClock.now(), isEnough: \.isUsable)
    }

    /// True if more may be fetched for `client` than is read.
    func mayFetchUnread(for client: QuotaHolder?) -> Bool {
        node.unreadAllowance.withLock { $0.hasRemaining(for: client, now: SystemClock.now()) }
    }

    /// Has `client` answer for bytes that are fetched for it and that nobody reads; false if it has
    /// as many as it may have.
    func chargeUnread(_ bytes: UInt64, for client: QuotaHolder?) -> Bool {
        let isTaken = node.unreadAllowance.withLock {
            $0.consume(bytes, for: client, now: SystemClock.now())
        }
        if isTaken { counters.add(.originUnreadBytes, Int(clamping: bytes)) }
        return isTaken
    }
}
