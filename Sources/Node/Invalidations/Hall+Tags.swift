import HTTPRules
import Logging

extension Hall {
    /// An answer has more tags than are kept: a purge by those will not find it.
    func noteCut(_ count: Int, of key: [UInt8], for cause: RequestCause) {
        node.logger.warning(
            "tags left out: too many or too long",
            metadata: cause.metadata([
                "url": "\(String(decoding: key, as: UTF8.self))", "tags": "\(count)",
            ]))
    }

    /// What says of which originals answers of the site of `plan` are made.
    ///
    /// It is what holds on this loop, whatever held when the request came: what is tagged once all
    /// loops have taken over other rules is tagged by those.
    func originals(by plan: SitePlan) -> SiteOriginals? {
        let plans = settings.sitePlans
        guard plan.images == nil else { return nil }
        if plan.number < plans.count, plans[plan.number] === plan { return plan.originals }
        let present = plans.first { $0.isSuccessor(of: plan) }
        return (present ?? plan).originals
    }
}
