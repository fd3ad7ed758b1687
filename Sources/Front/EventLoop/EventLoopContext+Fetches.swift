import Ground
import HTTPRules
import Origin
import Platform
import Serving
import Store
import Synchronization
import Telemetry
import Wire

/// Fetches in the background, which no client waits for.
extension EventLoopContext {
    /// Revalidates `stale`, which is being served, in the background (RFC 5861 §3), unless the key
    /// was suspended after a failure.
    ///
    /// At most one background fetch for a key runs at a time.
    ///
    /// - Parameters:
    ///   - query: the request, whose background variant is fetched.
    ///   - stale: the stored response to revalidate.
    ///   - cause: the request that is served the stale response.
    ///   - client: the client whose quota is charged; `nil` for none.
    ///   - now: the current time.
    func revalidateInBackground(
        _ query: SiteRequest, _ stale: MemoryEntry, cause: RequestCorrelation, client: QuotaHolder?,
        now: Instant
    ) {
        fetchInBackground(query.backgroundVariant, stale, cause: cause, client: client, now: now) {
            $0 == .fresh
        }
    }

    /// Fetches `background` without a reader, unless a stored response suffices, another fetch for
    /// the request is in progress, or the key was suspended after a failure.
    ///
    /// - Parameters:
    ///   - background: the request to make.
    ///   - stale: the stored response to revalidate; `nil` to fetch unconditionally.
    ///   - cause: the identifiers of the request that causes the fetch.
    ///   - client: the client whose quota is charged; `nil` for none.
    ///   - now: the current time.
    ///   - isEnough: returns true if a stored response with this reuse decision suffices.
    func fetchInBackground(
        _ background: SiteRequest, _ stale: MemoryEntry?, cause: RequestCorrelation,
        client: QuotaHolder?,
        now: Instant, isEnough: (Reuse) -> Bool
    ) {
        let query = background
        if let until = backgroundPauses[query.hash], now < until { return }
        let expected = stale.map(query.nominated) ?? FieldNames()
        let admission = node.fetches.admit(
            query,
            lookUp: {
                guard case .found(let found, let reuse) = background.find(in: node.store, now: now)
                else { return nil }
                return isEnough(reuse) ? found : nil
            },
            start: {
                ActiveFetch(
                    query, stale: stale, on: self, cause: cause, client: client,
                    expected: expected)
            })
        switch admission {
        case .stored: break
        case .joined(let run, let reader): run.leave(reader)
        case .started(let run, let reader):
            let name = node.disk == nil ? nil : EntryName(ofKey: query.key)
            fetches.start(LookupDriver(run, name: name, on: self), readsDisk: false)
            // A response that is kept is fetched to its end without readers.
            run.leave(reader)
        }
    }

    /// Suspends background fetches for the key for a second after a failure of the origin.
    func pauseBackground(_ query: SiteRequest, now: Instant) {
        if backgroundPauses.count >= Self.backgroundPausesMax { backgroundPauses = [:] }
        backgroundPauses[query.hash] = now + Self.backgroundPause
    }

    /// Maximum number of suspended keys; at the limit all are resumed.
    private static let backgroundPausesMax = 4096
    /// Time for which background fetches of a key are suspended after a failure.
    private static let backgroundPause = Interval.seconds(1)
}

/// Fetches for range requests of responses that are not stored.
extension EventLoopContext {
    /// Returns whether to fetch the whole response or the requested part, and counts the range
    /// request; `nil` if the request is not for a part, or a stored response is being revalidated.
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

    /// Records whether the whole response, of which `run` fetches a part, can be stored; fetches it
    /// in the background if it is small.
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

    /// Returns true if `client` has allowance left for bytes that no client reads.
    func mayFetchUnread(for client: QuotaHolder?) -> Bool {
        node.unreadAllowance.withLock { $0.hasRemaining(for: client, now: SystemClock.now()) }
    }

    /// Charges `client` for bytes that are fetched for it and not read; returns false if
    /// its allowance is exhausted.
    func chargeUnread(_ bytes: UInt64, for client: QuotaHolder?) -> Bool {
        let isTaken = node.unreadAllowance.withLock {
            $0.consume(bytes, for: client, now: SystemClock.now())
        }
        if isTaken { counters.add(.originUnreadBytes, Int(clamping: bytes)) }
        return isTaken
    }
}

extension EventLoopCounters {
    /// Counts a fetch from an origin that brought no complete response, and its cause.
    func add(_ failure: OriginFailure) {
        add(.originFetchesFailed)
        add(failure.underlying.metric)
        guard case .timedOut(let phase, limit: _) = failure.underlying else { return }
        switch phase {
        case .resolving, .connecting, .handshaking: add(.timeoutsOriginConnect)
        case .awaitingHead: add(.timeoutsOriginFirstByte)
        case .readingBody, .readingSlowly: add(.timeoutsOriginIdle)
        case .total: add(.timeoutsOriginTotal)
        }
    }
}
