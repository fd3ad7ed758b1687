import Ground
import HTTPRules
import NodeConfiguration
import Origin

/// The policies of images requested by their URLs, which name their origins.
struct ImagePolicies: Sendable {
    /// Policy for origins that match no pattern.
    let defaultPolicy: SitePolicy
    /// Policies by origin pattern; the first match applies.
    let originPolicies: [(pattern: OriginPattern, plan: SitePolicy)]

    /// Creates the policies from a default and those of named origins.
    init(_ others: SitePolicy, named: [(pattern: OriginPattern, plan: SitePolicy)] = []) {
        self.defaultPolicy = others
        self.originPolicies = named
    }

    /// Returns the policy of the image with this key.
    func policy(ofKey key: Span<UInt8>) -> SitePolicy {
        guard !originPolicies.isEmpty, let origin = OriginAuthority(ofKey: key) else {
            return defaultPolicy
        }
        return originPolicies.first { $0.pattern.matches(host: origin.host, port: origin.port) }?
            .plan
            ?? defaultPolicy
    }

    /// True if the nodes of a cluster share at least some images.
    var areShared: Bool {
        defaultPolicy.settings.usesPeers || originPolicies.contains { $0.plan.settings.usesPeers }
    }
}

extension ImagePolicies {
    /// Creates the policies of a configuration's image block.
    init(_ block: ImageBlock, _ rules: ImageRules, objectBytesMax: UInt64) {
        func plan(_ settings: ImageSettings) -> SitePolicy {
            SitePolicy(rules, settings, objectBytesMax: objectBytesMax)
        }
        self.init(
            plan(block.all), named: block.origins.map { ($0.pattern, plan($0.settings)) })
    }
}

/// Rules for images beyond those for all sites.
extension SitePolicy {
    /// Limits the reuse of an image obtained through a redirect to what the redirect permits; does
    /// nothing for a site.
    func limit(_ examination: inout Cacheability, by redirect: Redirect) {
        guard let imageRules else { return }
        examination.limit(by: redirect, defaultTTL: imageRules.defaultTTL)
    }

    /// Returns the problem to send in place of a response that is not acceptable as an image; `nil`
    /// if it is, and for a site.
    func problem(of head: ResponseHead, _ examination: Cacheability) -> Problem? {
        guard let imageRules else { return nil }
        if head.status != 200 { return .originStatus(head.status) }
        if !examination.isTypeAccepted { return .notAnImage(head) }
        return imageRules.acceptsContentCoding || !ImageProbe.isCodedRaster(head)
            ? nil : .encodedImage
    }

    /// Returns the lifetime and the selecting fields of a negative response; `nil` if it must not
    /// be stored.
    ///
    /// - Parameters:
    ///   - head: the head of the origin's response.
    ///   - examination: the response evaluated as if it were an image.
    ///   - receipt: when the response was requested and received.
    ///   - redirects: the redirects that were followed, which limit the lifetime.
    /// - Returns: the cacheability of the negative response; `nil` if it must not be stored.
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

    /// Returns true if an error response with this status, of which nothing else is known,
    /// invalidates the stored response.
    ///
    /// - Parameters:
    ///   - before: the state of the stored response.
    ///   - status: the status of the error response.
    /// - Returns: false if nothing is stored, or the stored response remains usable.
    func isInvalidated(_ before: StorageDecision.StoredState, byRefusal status: UInt16) -> Bool {
        guard before != .nothing else { return false }
        return settings.negativeTTLs.contains { $0.status == status }
            || before == .stale && !StatusRules.isTransient(status)
    }

    /// Returns the request fields that select the response.
    func varyNames(of head: ResponseHead) -> VaryNames {
        imageRules == nil
            ? VaryNames(head) : VaryNames(image: head.lines, in: head.bytes.span)
    }

    /// Returns the field lines forwarded for a request for an image that reduces to `negotiation`;
    /// the policy must be one of images.
    func forwarded(_ negotiation: Negotiation) -> RequestFields {
        reducedRequests[Int(negotiation.rawValue & Negotiation.all.rawValue)].lines
    }

    /// Returns the request to the origin of the image with this key; `nil` if the key is not valid.
    ///
    /// Fields configured by the operator are sent to the image's own origin only, not to redirect
    /// targets.
    ///
    /// - Parameters:
    ///   - key: the canonical key of the image.
    ///   - negotiation: the formats and codings that the request accepts.
    ///   - conditions: conditional fields, such as If-None-Match.
    ///   - cause: the identifiers of the causing request, which are sent to the origin.
    /// - Returns: the serialised request; `nil` if `key` is not valid.
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
                + conditions + causeLines, originOnlyFields: requestFieldRules.overriddenLines,
            sendsUserAgent: !requestFieldRules.removed.contains("user-agent"))
    }

    /// Returns the reductions of image requests, indexed by the raw value of `Negotiation`.
    static func reductions(
        by rules: RequestFieldRules
    ) -> [(fields: [FieldSetting], lines: RequestFields)] {
        // Without Accept-Encoding, an origin may assume that every coding is accepted (RFC 9110
        // §12.5.3), but a coded response must not reach clients that did not request it.
        let isPlain = rules.removed.contains("accept-encoding")
        let plain = isPlain ? FieldSetting(name: "Accept-Encoding", value: "identity") : nil
        return (0...Negotiation.all.rawValue).map {
            let fields =
                rules.normalisedLines(Negotiation(rawValue: $0)) + (plain.map { [$0] } ?? [])
            return (fields, RequestFields(fields))
        }
    }
}

/// The rules that a response must meet to be served as an image.
struct ImageRules: Sendable {
    /// The media types of images, and those served in addition.
    var types: ImageMediaTypes
    /// The largest number of pixels; `nil` for no limit.
    var pixelsMax: UInt64?
    /// True if raster images with a Content-Encoding are served, without inspection.
    var acceptsContentCoding: Bool
    /// The freshness lifetime if the origin names none (RFC 9111 §4.2.2 leaves it to the cache).
    var defaultTTL: Interval
}
