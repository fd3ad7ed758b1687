import Ground
import HTTPRules

/// What images are held to beside what holds for all sites.
extension SitePlan {
    /// What was found by way of a redirect is used no longer, and for no others, than that allows.
    func limit(_ examination: inout Examination, by redirect: Redirect) {
        guard let images else { return }
        examination.limit(by: redirect, defaultTTL: images.defaultTTL)
    }

    /// Why an answer is given to nobody; nil if it is.
    func refusal(of head: AnswerHead, _ examination: Examination) -> Problem? {
        guard let images else { return nil }
        if head.status != 200 { return .originStatus(head.status) }
        if !examination.isTypeAccepted { return .notAnImage(head) }
        return images.takesCoded || !ImageProbe.isVeiled(head) ? nil : .codedImage
    }

    /// For how long it is to be remembered that there is no image; nil for not at all.
    func absence(_ head: AnswerHead, _ receipt: Freshness.Receipt) -> Freshness? {
        guard images != nil,
            let negative = settings.negativeTTLs.first(where: { $0.status == head.status })
        else { return nil }
        let answered = AnswerControl(cacheControlOf: head)
        let control = answered.control.ofWholeAnswer
        guard !control.flags.contains(.noStore), !control.flags.contains(.isPrivate),
            !control.flags.contains(.noCache)
        else { return nil }
        var policy = FreshnessPolicy()
        policy.ttlMax = settings.ttlMax
        policy.negativeTTLs = [.init(status: negative.status, ttl: negative.ttl)]
        let freshness = Freshness(head, control: answered, receipt: receipt, policy: policy)
        return freshness.lifetime > .zero ? freshness : nil
    }

    /// The fields of requests that answers are selected by; those of images are told apart by the
    /// reduced negotiation.
    func vary(of head: AnswerHead) -> VaryNames { images == nil ? VaryNames(head) : VaryNames() }
}
