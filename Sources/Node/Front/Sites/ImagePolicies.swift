import Ground
import HTTPRules
import Origin

/// How images are answered that are asked for by their URLs, which say where they come from.
struct ImagePolicies: Sendable {
    /// Of origins that no pattern is for.
    let defaultPolicy: SitePolicy
    /// The first pattern that an origin matches counts.
    let originPolicies: [(pattern: OriginPattern, plan: SitePolicy)]

    init(_ others: SitePolicy, named: [(pattern: OriginPattern, plan: SitePolicy)] = []) {
        self.defaultPolicy = others
        self.originPolicies = named
    }

    /// How the image with this key is answered.
    func policy(ofKey key: Span<UInt8>) -> SitePolicy {
        guard !originPolicies.isEmpty, let origin = OriginAuthority(ofKey: key) else {
            return defaultPolicy
        }
        return originPolicies.first { $0.pattern.matches(host: origin.host, port: origin.port) }?
            .plan
            ?? defaultPolicy
    }

    /// The nodes of a cluster have some of them together.
    var areShared: Bool {
        defaultPolicy.settings.usesPeers || originPolicies.contains { $0.plan.settings.usesPeers }
    }
}

extension ImagePolicies {
    init(_ block: ImageBlock, _ rules: ImageRules, objectBytesMax: UInt64) {
        func plan(_ settings: ImageSettings) -> SitePolicy {
            SitePolicy(rules, settings, objectBytesMax: objectBytesMax)
        }
        self.init(
            plan(block.all), named: block.origins.map { ($0.pattern, plan($0.settings)) })
    }
}

/// What images are held to beside what holds for all sites.
extension SitePolicy {
    /// What was found by way of a redirect is used no longer, and for no others, than that allows.
    func limit(_ examination: inout Cacheability, by redirect: Redirect) {
        guard let imageRules else { return }
        examination.limit(by: redirect, defaultTTL: imageRules.defaultTTL)
    }

    /// Why an answer is given to nobody; nil if it is.
    func problem(of head: ResponseHead, _ examination: Cacheability) -> Problem? {
        guard let imageRules else { return nil }
        if head.status != 200 { return .originStatus(head.status) }
        if !examination.isTypeAccepted { return .notAnImage(head) }
        return imageRules.acceptsContentCoding || !ImageProbe.isCodedRaster(head)
            ? nil : .encodedImage
    }

    /// For how long, and of which requests, it is to be remembered that there is no image; nil for
    /// not at all.
    ///
    /// `examination` is that of the answer, judged as an image would be.
    func negativeResponse(
        _ head: ResponseHead, _ examination: Cacheability, _ receipt: Freshness.ResponseTiming,
        by redirects: [Redirect]
    ) -> Cacheability? {
        guard imageRules != nil, examination.isCollapsible, !examination.flags.contains(.noCache),
            let negative = settings.negativeTTLs.first(where: { $0.status == head.status })
        else { return nil }
        var policy = FreshnessPolicy()
        policy.ttlMax = settings.ttlMax
        policy.negativeTTLs = [.init(status: negative.status, ttl: negative.ttl)]
        var absence = examination
        absence.freshness = Freshness(
            head, control: EffectiveCacheControl(cacheControlOf: head), timing: receipt,
            policy: policy)
        for redirect in redirects { limit(&absence, by: redirect) }
        return receipt.receivedAt < absence.freshness.freshUntil ? absence : nil
    }

    /// True if a refusal by the origin, of which only the status is known, ends what was stored
    /// `before`.
    func isInvalidated(_ before: StorageDecision.StoredState, byRefusal status: UInt16) -> Bool {
        guard before != .nothing else { return false }
        return settings.negativeTTLs.contains { $0.status == status }
            || before == .stale && !StatusRules.isTransient(status)
    }

    /// The fields of requests that answers are selected by.
    func varyNames(of head: ResponseHead) -> VaryNames {
        imageRules == nil
            ? VaryNames(head) : VaryNames(image: head.lines, in: head.bytes.span)
    }

    /// What the origin is told of a request for an image that reduces to `negotiation`.
    func forwarded(_ negotiation: Negotiation) -> RequestFields {
        reducedRequests[Int(negotiation.rawValue & Negotiation.all.rawValue)].lines
    }

    /// Asks the origin of the image with this key, with these `conditions`; nil if it is no key.
    ///
    /// What the operator says is for the image's own origin, and for none that it redirects to.
    func request(
        for key: [UInt8], _ negotiation: Negotiation, _ conditions: [FieldSetting],
        cause: RequestCorrelation
    ) -> OriginFetchRequest? {
        let causeLines = cause.fieldLines(span: .randomSpanID()).filter {
            !requestFieldRules.isConfigured($0)
        }
        return OriginFetchRequest(
            key: key,
            fields: reducedRequests[Int(negotiation.rawValue & Negotiation.all.rawValue)].fields
                + conditions + causeLines, originOnlyFields: requestFieldRules.lines,
            sendsUserAgent: !requestFieldRules.removed.contains("user-agent"))
    }

    /// Everything that a request for an image can be reduced to, by its bits.
    static func reductions(
        by rules: RequestFieldRules
    ) -> [(fields: [FieldSetting], lines: RequestFields)] {
        // Of whom nothing is said an origin may think that it reads every coding (RFC 9110
        // §12.5.3), and one must reach nobody who did not ask for it.
        let isPlain = rules.removed.contains("accept-encoding")
        let plain = isPlain ? FieldSetting(name: "Accept-Encoding", value: "identity") : nil
        return (0...Negotiation.all.rawValue).map {
            let fields =
                rules.normalisedLines(Negotiation(rawValue: $0)) + (plain.map { [$0] } ?? [])
            return (fields, RequestFields(fields))
        }
    }
}
