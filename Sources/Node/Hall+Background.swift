import Ground
import HTTPRules
import Origin
import Serving
import Store
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
