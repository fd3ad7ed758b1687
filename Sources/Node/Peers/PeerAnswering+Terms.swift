import Cluster
import HTTPRules
import Store

/// On which terms an answer goes to a peer, and what is said in place of one.
extension PeerRequestHandler {
    /// The terms of what a fetch brings; nil if it is not for who asks.
    ///
    /// What may not be shared goes to the one who caused it.
    func terms(_ view: FetchSnapshot) -> PeerEntry.Terms? {
        let known = view.progress
        // To a probe only what holds is an answer.
        guard view.isShared || causedFetch, known.staleFallback == nil || query.kind == .get else {
            return nil
        }
        var terms = PeerEntry.Terms()
        if !view.isShared { terms.restrictions.insert(.isPrivate) }
        if !known.isStored { terms.restrictions.insert(.isNoStore) }
        if known.isHitForMiss { terms.restrictions.insert(.isHitForMiss) }
        if let stoodIn = known.staleFallback {
            terms.restrictions.formUnion([.isStaleIfError, .isNoStore])
            terms.originErrorStatus = stoodIn.status
        }
        return terms
    }

    /// It has caused the fetch that it waits for.
    var causedFetch: Bool { logSummary.part == .miss || logSummary.part == .revalidated }

    // MARK: In place of an answer

    func failureReply(_ outcome: FetchSnapshot.Outcome) -> PeerReply {
        guard case .failed(let problem) = outcome else { return declineReply(.overloaded) }
        return failureReply(of: problem)
    }

    func failureReply(of problem: Problem) -> PeerReply {
        query.kind == .probe
            ? .absent
            : .originFailed(
                PeerOriginFailure(
                    status: problem.originStatus ?? 0, cause: .answer, mayServeStale: true,
                    text: problem.document.detail))
    }

    /// There is no image: this node remembers it, and whoever asks need not.
    func absenceReply(_ status: UInt16) -> PeerReply { failureReply(of: .originStatus(status)) }

    func declineReply(_ reason: DeclineReason) -> PeerReply {
        query.kind == .probe ? .absent : .declined(reason)
    }

    // MARK: Before an answer

    /// Passes an interim answer on, if this question has caused `run`.
    func relay(interim head: [UInt8], for run: ActiveFetch) {
        guard case .awaitingHead(let waited, _) = stage, waited === run else { return }
        send(.interim(head))
        connection.scheduleFlush()
    }
}
