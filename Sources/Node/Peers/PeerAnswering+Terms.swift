import Cluster
import HTTPRules
import Store

/// On which terms an answer goes to a peer, and what is said in place of one.
extension PeerAnswering {
    /// The terms of what a fetch brings; nil if it is not for who asks.
    ///
    /// What may not be shared goes to the one who caused it.
    func terms(_ view: FillView) -> HeldEntry.Terms? {
        let known = view.known
        // To a probe only what holds is an answer.
        guard view.isShared || isCause, known.stoodIn == nil || question.kind == .get else {
            return nil
        }
        var terms = HeldEntry.Terms()
        if !view.isShared { terms.limits.insert(.isUnshared) }
        if !known.isStored { terms.limits.insert(.isUnkept) }
        if known.isHitForMiss { terms.limits.insert(.isHitForMiss) }
        if let stoodIn = known.stoodIn {
            terms.limits.formUnion([.standsIn, .isUnkept])
            terms.failedStatus = stoodIn.status
        }
        return terms
    }

    /// It has caused the fetch that it waits for.
    var isCause: Bool { result.part == .miss || result.part == .revalidated }

    // MARK: In place of an answer

    func failure(_ outcome: FillView.Outcome) -> PeerAnswer {
        guard case .refused(let problem) = outcome else { return refusal(.overloaded) }
        return failure(of: problem)
    }

    func failure(of problem: Problem) -> PeerAnswer {
        question.kind == .probe
            ? .absent
            : .originFailed(
                PeerOriginFailure(
                    status: problem.originStatus ?? 0, cause: .answer, mayServeStale: true,
                    text: problem.document.detail))
    }

    /// There is no image: this node remembers it, and whoever asks need not.
    func absence(_ status: UInt16) -> PeerAnswer { failure(of: .originStatus(status)) }

    func refusal(_ reason: FetchYourselfReason) -> PeerAnswer {
        question.kind == .probe ? .absent : .fetchYourself(reason)
    }

    // MARK: Before an answer

    /// Passes an interim answer on, if this question has caused `run`.
    func relay(interim head: [UInt8], for run: FillRun) {
        guard case .waiting(let waited, _) = stage, waited === run else { return }
        answer(.interim(head))
        connection.flushSoon()
    }
}
