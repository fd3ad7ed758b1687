import Ground
import HTTPRules
import Serving

/// What answers tell of the wholes of which clients want parts.
extension OriginSource {
    /// An answer to a request for a part.
    func recordStorability(from head: ResponseHead, _ receipt: Freshness.ResponseTiming) {
        guard let size = head.completeLength else { return }
        guard size <= siteRequest.policy.objectBytesMax else {
            return context.recordRepresentation(.unstorable, by: fetch)
        }
        guard head.status == 206 else { return }
        // The whole will come with the same fields, as far as they are not of the part.
        var whole = head
        whole.status = 200
        let acceptance = StorageDecision(
            siteRequest.policy.evaluate(whole, siteRequest, receipt),
            siteRequest.policy.varyNames(of: whole), status: 200,
            before: .nothing)
        context.recordRepresentation(
            acceptance.isStorable ? .storable(bytes: size) : .unstorable, by: fetch)
    }

    /// True if the fetch is to begin anew, because its answer cannot be stored and nothing would be
    /// had of the whole but the part that the one who caused it wants.
    ///
    /// Notes that it cannot.
    func shouldFetchPart(_ acceptance: StorageDecision, _ head: ResponseHead, _ length: UInt64?)
        -> Bool
    {
        guard siteRequest.policy.imageRules == nil, head.status == 200,
            !acceptance.isStorable || length ?? 0 > siteRequest.policy.objectBytesMax
        else { return false }
        context.recordRepresentation(.unstorable, by: fetch)
        return fetch.staleEntry == nil
            && siteRequest.requestsPart(rangesMax: fetch.settings.rangesMax)
    }

    /// The part is asked for in place of the whole.
    func switchToPart(_ length: UInt64?) {
        driver.handle { $0.lost(effects: &$1) }
        discardResponse(length)
    }

    /// Notes that a body whose length was not known has outgrown what is stored.
    func recordOversize() {
        guard siteRequest.policy.imageRules == nil, acceptedResponse != nil,
            fetch.exceedsStorageLimit
        else { return }
        context.recordRepresentation(.unstorable, by: fetch)
    }
}
