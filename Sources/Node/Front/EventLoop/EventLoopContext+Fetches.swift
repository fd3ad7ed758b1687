import Ground
import HTTPRules
import Origin
import Serving
import Store
import Synchronization
import Telemetry
import Wire

/// Questions to origins that no client waits for, or that are not asked.
extension EventLoopContext {
    /// Asks the origin in the background whether `stale`, which is being given to the client whose
    /// request is the cause, is still good; at most one such question for a key runs at a time (RFC
    /// 5861 §3).
    func revalidateInBackground(
        _ query: SiteRequest, _ stale: MemoryEntry, cause: RequestCorrelation, client: QuotaHolder?,
        now: Instant
    ) {
        fetchInBackground(query.backgroundVariant, stale, cause: cause, client: client, now: now) {
            $0 == .fresh
        }
    }

    /// Fetches what `query` asks for if nothing stored is good enough for it.
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
            startFetch(
                run, name: node.disk == nil ? nil : EntryName(ofKey: query.key), asksDisk: false,
                for: nil)
            // With an answer that is kept it goes on without a reader.
            run.leave(reader)
        }
    }

    /// The origin has failed in the background: it is not asked about the key at every hit.
    func pauseBackground(_ query: SiteRequest, now: Instant) {
        if backgroundPauses.count >= Self.backgroundPausesMax { backgroundPauses = [:] }
        backgroundPauses[query.hash] = now + Self.backgroundPause
    }

    private static let backgroundPausesMax = 4096
    private static let backgroundPause = Interval.seconds(1)
}

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

/// What a loop counts of its fetches.
extension EventLoopContext {
    /// A fetch from an origin brought no whole answer.
    func count(_ failure: OriginFailure) {
        counters.add(.originFetchesFailed)
        counters.add(failure.underlying.metric)
        guard case .timedOut(let phase, limit: _) = failure.underlying else { return }
        switch phase {
        case .resolving, .connecting, .handshaking: counters.add(.timeoutsOriginConnect)
        case .awaitingHead: counters.add(.timeoutsOriginFirstByte)
        case .readingBody, .readingSlowly: counters.add(.timeoutsOriginIdle)
        case .total: counters.add(.timeoutsOriginTotal)
        }
    }
}

extension OriginFailure {
    /// What it is counted as by its reason.
    fileprivate var metric: Metric {
        switch self {
        case .originNotAllowed, .addressRefused: .originFailuresNotAllowed
        case .nameNotFound, .resolverFailed: .originFailuresName
        case .connectFailed: .originFailuresConnect
        case .tls: .originFailuresTLS
        case .timedOut: .originFailuresTimeout
        case .closedBeforeResponse, .truncated, .reset, .closedWithoutNotify: .originFailuresBroken
        case .http2, .contentLengthExceeded, .malformed, .headTooLarge, .tooManyInterimResponses:
            .originFailuresProtocol
        case .bodyTooLarge: .originFailuresTooLarge
        case .tooManyRedirects, .redirectLoop, .redirectRefused: .originFailuresRedirects
        case .redirected(_, let failure): failure.metric
        case .circuitOpen: .originFailuresCircuit
        case .overloaded: .originFailuresLimit
        case .shuttingDown: .originFailuresStopping
        }
    }
}
