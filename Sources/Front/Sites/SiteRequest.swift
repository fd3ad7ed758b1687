import Ground
import HTTPRules
import Origin
import Peering
import Serving
import Store
import Telemetry
import Wire

/// A request to a site, or for an image, as its lookups, its fetch and its readers require it.
final class SiteRequest: Sendable {
    /// Policy of the request's site.
    let policy: SitePolicy
    /// Key of the primary entry, as `SiteKey` makes it; empty if the request has none.
    let key: [UInt8]
    /// The keyed hash of ``key``.
    let hash: UInt64
    /// Reduction of an image request, from which ``forwardedFields`` are made; empty for a site.
    let negotiation: Negotiation
    /// The field lines as sent by the client.
    let clientFields: RequestFields
    /// The field lines as forwarded to the origin, by which variants are selected.
    let forwardedFields: RequestFields
    /// Method of the client's request.
    let method: RequestMethod
    /// The parts of the forwarded request other than the fields.
    let forwardedRequest: ForwardedRequest
    /// The request relayed by a peer; `nil` for a client's own request.
    let relayed: RelayedRequest?
    /// Cache-Control of the request, if the site honours it.
    let cacheControl: RequestCacheControl
    /// True if the client sent Authorization.
    let hasAuthorization: Bool
    /// True if the client sent Cookie.
    let hasCookie: Bool
    /// Framing of the request body.
    let body: RequestBodyFraming
    /// How the request is forwarded.
    let mode: Mode
    /// True if no client waits for the response.
    let isBackground: Bool
    /// Counters of the site; `nil` for images, which only the node's metrics include.
    let counters: SiteCounters?
    /// Memory share of the site or of images; `nil` if it is unlimited.
    let share: MemoryShare?
    /// Fence of the node, which limits reuse.
    let fence: FenceStatus

    /// How a request is forwarded to the origin.
    enum Mode: Sendable {
        /// For the complete resource, so that it can be stored; ranges and conditions are evaluated
        /// here.
        case whole
        /// Unchanged, with ranges and conditions. A partial response is passed on; another is
        /// treated as the complete one.
        case part
        /// Unchanged, with ranges and conditions; the response is passed on.
        case verbatim
    }

    /// Creates a request from its parts.
    init(
        _ plan: SitePolicy, key: [UInt8], hash: UInt64, lines: RequestFields, method: RequestMethod,
        asked: ForwardedRequest, control: RequestCacheControl, hasAuthorization: Bool,
        hasCookie: Bool, body: RequestBodyFraming, mode: Mode, counters: SiteCounters?,
        share: MemoryShare?,
        fence: FenceStatus, isBackground: Bool = false, negotiation: Negotiation = [],
        relayed: RelayedRequest? = nil
    ) {
        self.negotiation = negotiation
        self.relayed = relayed
        self.isBackground = isBackground
        self.fence = fence
        self.policy = plan
        self.key = key
        self.hash = hash
        self.clientFields = lines
        forwardedFields =
            plan.imageRules == nil && relayed == nil ? plan.forwarded(asked, lines) : lines
        self.method = method
        self.forwardedRequest = asked
        self.cacheControl = control
        self.hasAuthorization = hasAuthorization
        self.hasCookie = hasCookie
        self.body = body
        self.mode = mode
        self.counters = counters
        self.share = share
    }

    /// Creates a request for an image by its URL, `key`.
    convenience init(
        image key: [UInt8], hash: UInt64, _ negotiation: Negotiation, on context: EventLoopContext
    ) {
        let plan = context.settings.images.policy(ofKey: key.span)
        self.init(
            plan, key: key, hash: hash, lines: plan.forwarded(negotiation), method: .get,
            asked: ForwardedRequest(
                method: ForwardedRequest.get, target: [], host: [], client: nil,
                remoteAddress: nil),
            control: .none, hasAuthorization: false, hasCookie: false, body: .none, mode: .whole,
            counters: nil, share: context.share(of: plan), fence: context.fence,
            negotiation: negotiation)
    }

    /// Creates the request relayed by a peer for a key that this node owns.
    convenience init(
        _ relayed: RelayedRequest, key: [UInt8], hash: UInt64, by plan: SitePolicy,
        on context: EventLoopContext
    ) {
        let fields = RequestFields(serialized: relayed.head)
        self.init(
            plan, key: key, hash: hash, lines: fields, method: .get,
            asked: ForwardedRequest(
                method: ForwardedRequest.get, target: [], host: [], client: nil, remoteAddress: nil,
                isSecure: relayed.flags.contains(.isSecure)),
            control: .none, hasAuthorization: relayed.flags.contains(.hasAuthorization),
            hasCookie: relayed.flags.contains(.hasCookie), body: .none, mode: .whole,
            counters: context.siteCounters[plan.number], share: context.share(of: plan),
            fence: context.fence, relayed: relayed)
    }

    /// True for an image requested by its URL.
    var isImage: Bool { policy.imageRules != nil }

    /// Key of the primary entry, with its hash and memory share.
    var primaryKey: PrimaryKey { PrimaryKey(key: key, hash: hash, share: share) }

    /// True if another node may be queried in place of the origin.
    ///
    /// False if the client's directives restrict reuse, or if the response can hardly be shared
    /// with others.
    var isShared: Bool {
        guard policy.settings.usesPeers else { return false }
        return isImage
            || isGet && mode == .whole && !isExclusive && cacheControl.isEmpty
                // The query of another node may wait for this very request.
                && (relayed != nil || !hasLoopIdentifier)
    }

    /// True if the site's policy permits the request to be forwarded.
    private var isSendable: Bool {
        guard relayed == nil else { return true }
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: .pass)
        guard case .send = outcome else { return false }
        return true
    }

    /// Returns the relayed form of the request for another node; `nil` if it may not be forwarded.
    ///
    /// For an image, whose key describes it completely, only the digest of its policy, or nothing
    /// if that is 0.
    func relayedBytes(through node: NodeCore, for client: QuotaHolder?) -> [UInt8]? {
        if isImage {
            var bytes: [UInt8] = []
            if policy.digest != 0 { bytes.appendLittle(policy.digest) }
            return bytes
        }
        guard isSendable else { return nil }
        var head = forwardedFields.bytes
        // The request may return through an origin that leads to this cluster.
        if relayed == nil, let passage = loopIdentifier(through: node) {
            CDNLoop.append(passage, to: &head)
        }
        var flags = relayed?.flags ?? []
        if forwardedRequest.isSecure { flags.insert(.isSecure) }
        if hasAuthorization { flags.insert(.hasAuthorization) }
        if hasCookie { flags.insert(.hasCookie) }
        if acceptsTrailers { flags.insert(.acceptsTrailers) }
        var address: IPAddress?
        if case .client(let known) = client { address = known }
        return RelayedRequest(policy: policy.digest, flags, client: address, head: head).bytes
    }

    /// Properties that decide which fetches may serve the request.
    var candidate: Lookup.Candidate {
        Lookup.Candidate(
            forwardedFields, hasControl: !cacheControl.isEmpty, wantsValidation: requiresValidation)
    }

    /// True if the client accepts trailer fields (RFC 9110 §6.5.1).
    var acceptsTrailers: Bool {
        relayed?.flags.contains(.acceptsTrailers) ?? clientFields.acceptsTrailers
    }

    /// True for GET.
    var isGet: Bool { method == .get }
    /// True for HEAD.
    var isHead: Bool { method == .head }

    /// True if only a response requested after this request arrived may serve it (RFC 9111
    /// §5.2.1.4).
    var requiresValidation: Bool { cacheControl.isNoCache || cacheControl.maxAge == .zero }

    /// True if the request neither shares its fetch nor joins another's, because the response would
    /// not suit other requests.
    var isExclusive: Bool {
        isHead || hasAuthorization || cacheControl.isNoStore || cacheControl.isOnlyIfCached
    }

    /// This request in the mode in which the origin fetch sends it: ``Mode/verbatim`` if the
    /// response cannot be stored, as for HEAD and the client's no-store, otherwise its own.
    var originVariant: SiteRequest { isHead || cacheControl.isNoStore ? verbatimVariant : self }

    /// This request in mode ``Mode/verbatim``.
    var verbatimVariant: SiteRequest { asked(in: .verbatim) }

    /// This request in mode ``Mode/part``.
    var partVariant: SiteRequest { asked(in: .part) }

    /// Returns this request in another mode, never as a background request.
    private func asked(in mode: Mode) -> SiteRequest {
        SiteRequest(
            policy, key: key, hash: hash, lines: clientFields, method: method,
            asked: forwardedRequest,
            control: cacheControl, hasAuthorization: hasAuthorization, hasCookie: hasCookie,
            body: body,
            mode: mode, counters: counters, share: share, fence: fence, negotiation: negotiation,
            relayed: relayed)
    }

    /// Returns true if a client requests ranges of a resource that may be stored, and at most
    /// `rangesMax` of them; more are served with the complete response.
    func requestsPart(rangesMax: Int) -> Bool {
        guard mode == .whole, isGet, !isBackground, !cacheControl.isNoStore else { return false }
        let bytes = clientFields.bytes
        return RangeSet.requestsPart(clientFields.lines, in: bytes.span, countMax: rangesMax)
    }

    /// A GET for the same resource without this client's directives, for background fetches.
    var backgroundVariant: SiteRequest {
        SiteRequest(
            policy, key: key, hash: hash, lines: clientFields, method: .get,
            asked: forwardedRequest.asGet,
            control: .none, hasAuthorization: hasAuthorization, hasCookie: hasCookie, body: .none,
            mode: .whole, counters: counters, share: share, fence: fence,
            isBackground: true, negotiation: negotiation, relayed: relayed)
    }

    /// Returns the CDN-Loop identifier of this request at this process; `nil` without a key, which
    /// could not be distinguished from others.
    func loopIdentifier(through node: NodeCore) -> CDNLoop.LoopIdentifier? {
        guard !key.isEmpty else { return nil }
        let request = EntryName(ofKey: forwardedRequest.method + key).digest.first
        return CDNLoop.LoopIdentifier(process: node.requestIDPrefix, request: request)
    }

    /// True if a node, possibly this one, has forwarded the request before.
    var hasLoopIdentifier: Bool {
        let bytes = clientFields.bytes
        return CDNLoop.count(clientFields.lines, in: bytes.span) > 0
    }

    /// Returns true if this node has forwarded this very request, whose fetch would wait for
    /// itself.
    func isLoop(at node: NodeCore) -> Bool {
        guard hasLoopIdentifier, let passage = loopIdentifier(through: node) else { return false }
        let bytes = clientFields.bytes
        return CDNLoop.contains(passage, clientFields.lines, in: bytes.span)
    }

    /// True if Max-Forwards designates this node as recipient (RFC 9110 §7.6.2).
    var isForThisNode: Bool {
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: .pass)
        return outcome == .respondLocally
    }

    /// Returns how an entry selected for the request may be used.
    func reuse(_ facts: EntryMetadata, now: Instant) -> Reuse {
        Serving.reuse(
            fence.effectiveFacts(facts, now: now), for: cacheControl,
            hasAuthorization: hasAuthorization,
            policy: policy.reusePolicy, now: now)
    }

    /// Returns true if an entry may stand in for a failing origin.
    func isUsableOnError(_ facts: EntryMetadata, now: Instant) -> Bool {
        Serving.isUsableOnError(
            fence.effectiveFacts(facts, now: now), for: cacheControl, policy: policy.reusePolicy,
            now: now)
    }
}

extension ForwardedRequest {
    fileprivate static let get = Array("GET".utf8)

    /// This request as a GET.
    fileprivate var asGet: ForwardedRequest {
        var request = self
        request.method = Self.get
        return request
    }
}

/// Requests to origins.
extension SiteRequest {
    /// Result of making a request to the origin.
    enum OriginRequestResult {
        case request(OriginFetchRequest)
        /// The origin is not contacted.
        case refused(Problem)
    }

    /// Makes the request to the origin, conditional if there are stored `entries`.
    func originRequest(
        validating entries: [MemoryEntry], for run: ActiveFetch, through node: NodeCore
    ) -> OriginRequestResult {
        guard let origin = policy.origin else { return imageOriginRequest(about: entries, run) }
        var validation = Validation()
        for entry in entries { validation.add(entry.head, metadata: entry.metadata) }
        if let relayed {
            let head = RequestForwarder.forward(
                fields: relayed.head, rules: policy.requestFieldRules, validation: validation,
                loopIdentifier: loopIdentifier(through: node),
                correlationLines: run.correlation.fieldLines(span: .randomSpanID()))
            return .request(request(to: origin, head, run))
        }
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: mode == .whole ? .store(validation) : .pass,
            acceptsTrailers: mode != .whole && clientFields.acceptsTrailers,
            loopIdentifier: loopIdentifier(through: node),
            correlationLines: run.correlation.fieldLines(span: .randomSpanID()))
        switch outcome {
        case .send(let head): return .request(request(to: origin, head, run))
        case .loopDetected, .respondLocally: return .refused(.loopDetected)
        case .outsideBasePath: return .refused(.pathOutsideSite)
        }
    }

    /// Returns the request to a site's origin with this head.
    private func request(
        to origin: OriginAuthority, _ head: [UInt8], _ run: ActiveFetch
    ) -> OriginFetchRequest {
        let name = forwardedRequest.method
        let isSafe = MethodProperties(name.span, at: 0..<name.count).contains(.isSafe)
        var request = OriginFetchRequest(
            origin: origin, method: method, head: head, body: body, isSafeToRetry: isSafe)
        // Forwarded bodies are limited by the size of their pieces and by idle timeouts.
        request.bodyBytesMax = .max
        request.totalLimit = Self.totalLimit
        request.quotaHolders = run.client.map { [$0] } ?? []
        request.upgrade = forwardedRequest.upgrade
        if !request.upgrade.isEmpty { request.quotaHolders.append(.upgrades) }
        if !body.isEmpty { request.quotaHolders.append(.uploads) }
        return request
    }

    /// Time limit of a complete exchange with a site's origin.
    private static let totalLimit = Interval.seconds(86_400)

    /// Makes the request to the origin of an image.
    private func imageOriginRequest(about entries: [MemoryEntry], _ run: ActiveFetch)
        -> OriginRequestResult
    {
        var validation = Validation()
        for entry in entries {
            validation.add(entry.head, metadata: entry.metadata, needsStrongDate: true)
        }
        let request = policy.request(
            for: key, negotiation, validation.lines, cause: run.correlation)
        // A corrupted stored key must not crash the node.
        guard var request else {
            return .refused(.originFailed(.malformed("the URL cannot be requested")))
        }
        request.quotaHolders = run.client.map { [$0] } ?? []
        return .request(request)
    }
}
