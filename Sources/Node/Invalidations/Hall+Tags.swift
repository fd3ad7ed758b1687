import HTTPRules
import Logging

extension EventLoopContext {
    /// An answer has more tags than are kept: a purge by those will not find it.
    func logTruncatedTags(_ count: Int, of key: [UInt8], for cause: RequestCorrelation) {
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
    func siteOriginals(by plan: SitePolicy) -> SiteOriginals? {
        let plans = settings.sitePolicies
        guard plan.imageRules == nil else { return nil }
        if plan.number < plans.count, plans[plan.number] === plan { return plan.originals }
        let present = plans.first { $0.isSuccessor(of: plan) }
        return (present ?? plan).originals
    }
}
