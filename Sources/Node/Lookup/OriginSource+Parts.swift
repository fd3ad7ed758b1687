import Ground
import HTTPRules
import Serving

/// What answers tell of the wholes of which clients want parts.
extension OriginSource {
    /// An answer to a request for a part.
    func learn(from head: AnswerHead, _ receipt: Freshness.Receipt) {
        guard let size = head.completeLength else { return }
        guard size <= query.plan.objectBytesMax else { return hall.learned(.unfit, by: run) }
        guard head.status == 206 else { return }
        // The whole will come with the same fields, as far as they are not of the part.
        var whole = head
        whole.status = 200
        let acceptance = Acceptance(
            query.plan.examine(whole, query, receipt), query.plan.vary(of: whole), status: 200,
            before: .nothing)
        hall.learned(acceptance.isStorable ? .storable(bytes: size) : .unfit, by: run)
    }

    /// True if the fetch is to begin anew, because its answer cannot be stored and nothing would be
    /// had of the whole but the part that the one who caused it wants.
    ///
    /// Notes that it cannot.
    func isUnfit(_ acceptance: Acceptance, _ head: AnswerHead, _ length: UInt64?) -> Bool {
        guard query.plan.images == nil, head.status == 200,
            !acceptance.isStorable || length ?? 0 > query.plan.objectBytesMax
        else { return false }
        hall.learned(.unfit, by: run)
        return run.stale == nil && query.wantsPart(rangesMax: run.settings.rangesMax)
    }

    /// The part is asked for in place of the whole.
    func giveUpWhole(_ length: UInt64?) {
        driver.tell { $0.lost(effects: &$1) }
        drop(length)
    }

    /// Notes that a body whose length was not known has outgrown what is stored.
    func noteSize() {
        guard query.plan.images == nil, answer != nil, run.hasOutgrown else { return }
        hall.learned(.unfit, by: run)
    }
}
