import Ground
import HTTPRules
import Origin
import Serving
import Store
import Telemetry
import Wire

/// A request to a site, or for an image, as its look-ups, its fetch and its readers need it.
final class SiteRequest: Sendable {
    let policy: SitePolicy
    /// Under which the site's answer stands, variants apart, as `SiteKey` makes it.
    ///
    /// Empty if it has none.
    let key: [UInt8]
    /// The keyed hash of ``key``.
    let hash: UInt64
    /// What the request for an image is reduced to, of which ``told`` is made; empty for a site.
    let negotiation: Negotiation
    /// The field lines as the client sent them.
    let clientFields: RequestFields
    /// The same as the origin is told of them, by which variants are selected.
    let forwardedFields: RequestFields
    let method: RequestMethod
    /// What the origin is told beside the fields.
    let forwardedRequest: ForwardedRequest
    /// What a peer has forwarded; nil for a client's own request.
    let relayed: RelayedRequest?
    let cacheControl: RequestCacheControl
    let hasAuthorization: Bool
    let hasCookie: Bool
    let body: RequestBodyFraming
    /// How much of what the client asked reaches the origin.
    let mode: Mode
    /// No client waits for it.
    let isBackground: Bool
    /// Nil for images, which are in the counts of the node alone.
    let counters: SiteCounters?
    /// The site's part of the memory; nil if it may take all of it.
    let share: MemoryShare?
    let fence: FenceStatus

    /// What the origin is asked for.
    enum Mode: Sendable {
        /// The whole of the resource, so that it can be stored; what the client wants of it is
        /// chosen here.
        case whole
        /// What the client asked, parts and conditions included. A part is passed on as it is, and
        /// an answer that is none is taken for what it is: the whole.
        case part
        /// What the client asked, parts and conditions included; the answer is passed on as it is.
        case verbatim
    }

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

    /// An image that is asked for by its URL, `key`.
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

    /// What a peer has forwarded, for a key that this node owns.
    convenience init(
        _ relayed: RelayedRequest, key: [UInt8], hash: UInt64, by plan: SitePolicy,
        on context: EventLoopContext
    ) {
        let told = RequestFields(serialized: relayed.head)
        self.init(
            plan, key: key, hash: hash, lines: told, method: .get,
            asked: ForwardedRequest(
                method: ForwardedRequest.get, target: [], host: [], client: nil, remoteAddress: nil,
                isSecure: relayed.flags.contains(.isSecure)),
            control: .none, hasAuthorization: relayed.flags.contains(.hasAuthorization),
            hasCookie: relayed.flags.contains(.hasCookie), body: .none, mode: .whole,
            counters: context.siteCounters[plan.number], share: context.share(of: plan),
            fence: context.fence, relayed: relayed)
    }

    var isImage: Bool { policy.imageRules != nil }

    var primaryKey: PrimaryKey { PrimaryKey(key: key, hash: hash, share: share) }

    /// Another node may be asked in the place of the origin.
    ///
    /// Not if the client has a say in what it may be given, or if hardly anybody else may be given
    /// it.
    var isShared: Bool {
        guard policy.settings.usesPeers else { return false }
        return isImage
            || isGet && mode == .whole && !isExclusive && cacheControl.isEmpty
                // Another node may wait for this very request.
                && (relayed != nil || !hasLoopIdentifier)
    }

    /// The origin may be sent it, as far as its site's policy goes.
    private var isSendable: Bool {
        guard relayed == nil else { return true }
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: .pass)
        guard case .send = outcome else { return false }
        return true
    }

    /// What another node is told of it: of an image, of which the key says all, the digest of its
    /// settings, if something is said of them; nil if the origin may not be sent it.
    func relayedBytes(through node: NodeCore, for client: QuotaHolder?) -> [UInt8]? {
        if isImage {
            var bytes: [UInt8] = []
            if policy.digest != 0 { bytes.appendLittle(policy.digest) }
            return bytes
        }
        guard isSendable else { return nil }
        var head = forwardedFields.bytes
        // It may come back through an origin that leads to this cluster.
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

    /// What decides which fetches may serve it.
    var candidate: Lookup.Candidate {
        Lookup.Candidate(
            forwardedFields, hasControl: !cacheControl.isEmpty, wantsValidation: requiresValidation)
    }

    /// The client reads trailer fields (RFC 9110 §6.5.1).
    var acceptsTrailers: Bool {
        relayed?.flags.contains(.acceptsTrailers) ?? clientFields.acceptsTrailers
    }

    var isGet: Bool { method == .get }
    var isHead: Bool { method == .head }

    /// It is given nothing whose request began before it came (RFC 9111 §5.2.1.4).
    var requiresValidation: Bool { cacheControl.isNoCache || cacheControl.maxAge == .zero }

    /// Nobody waits for its fetch, and it waits for nobody's: the answer would not be the others'.
    var isExclusive: Bool {
        isHead || hasAuthorization || cacheControl.isNoStore || cacheControl.isOnlyIfCached
    }

    /// As the origin is asked: an answer to HEAD is not stored, nor is what the client forbids to
    /// be.
    var originVariant: SiteRequest { isHead || cacheControl.isNoStore ? verbatimVariant : self }

    /// The same for an answer that is not stored.
    var verbatimVariant: SiteRequest { asked(in: .verbatim) }

    /// The same for an answer that may be a part.
    var partVariant: SiteRequest { asked(in: .part) }

    private func asked(in mode: Mode) -> SiteRequest {
        SiteRequest(
            policy, key: key, hash: hash, lines: clientFields, method: method,
            asked: forwardedRequest,
            control: cacheControl, hasAuthorization: hasAuthorization, hasCookie: hasCookie,
            body: body,
            mode: mode, counters: counters, share: share, fence: fence, negotiation: negotiation,
            relayed: relayed)
    }

    /// A client wants less than the whole of what it is that may be stored; of more ranges than
    /// `rangesMax` it gets the whole.
    func requestsPart(rangesMax: Int) -> Bool {
        guard mode == .whole, isGet, !isBackground, !cacheControl.isNoStore else { return false }
        let bytes = clientFields.bytes
        return RangeSet.requestsPart(clientFields.lines, in: bytes.span, countMax: rangesMax)
    }

    /// The same GET without what this client alone wants of its caches.
    var backgroundVariant: SiteRequest {
        SiteRequest(
            policy, key: key, hash: hash, lines: clientFields, method: .get,
            asked: forwardedRequest.asGet,
            control: .none, hasAuthorization: hasAuthorization, hasCookie: hasCookie, body: .none,
            mode: .whole, counters: counters, share: share, fence: fence,
            isBackground: true, negotiation: negotiation, relayed: relayed)
    }

    /// Its passage through this process; nil if it has no key, and is told apart from no other.
    func loopIdentifier(through node: NodeCore) -> CDNLoop.LoopIdentifier? {
        guard !key.isEmpty else { return nil }
        let request = EntryName(ofKey: forwardedRequest.method + key).digest.first
        return CDNLoop.LoopIdentifier(process: node.requestIDPrefix, request: request)
    }

    /// Another node, or this one, has asked for it.
    var hasLoopIdentifier: Bool {
        let bytes = clientFields.bytes
        return CDNLoop.count(clientFields.lines, in: bytes.span) > 0
    }

    /// It is this node that asked for it: whoever waited for its fetch would wait for themselves.
    func isLoop(at node: NodeCore) -> Bool {
        guard hasLoopIdentifier, let passage = loopIdentifier(through: node) else { return false }
        let bytes = clientFields.bytes
        return CDNLoop.contains(passage, clientFields.lines, in: bytes.span)
    }

    /// Max-Forwards says that this node is the one that is asked (RFC 9110 §7.6.2).
    var isForThisNode: Bool {
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: .pass)
        return outcome == .respondLocally
    }

    /// What an entry that was selected for it is good for.
    func reuse(_ facts: EntryMetadata, now: Instant) -> Reuse {
        Serving.reuse(
            fence.effectiveFacts(facts, now: now), for: cacheControl,
            hasAuthorization: hasAuthorization,
            policy: policy.reusePolicy, now: now)
    }

    /// True if an entry may be given in the stead of an origin that fails.
    func isUsableOnError(_ facts: EntryMetadata, now: Instant) -> Bool {
        Serving.isUsableOnError(
            fence.effectiveFacts(facts, now: now), for: cacheControl, policy: policy.reusePolicy,
            now: now)
    }
}

extension ForwardedRequest {
    fileprivate static let get = Array("GET".utf8)

    fileprivate var asGet: ForwardedRequest {
        var request = self
        request.method = Self.get
        return request
    }
}

/// What an origin is asked.
extension SiteRequest {
    enum OriginRequestResult {
        case request(OriginFetchRequest)
        /// It is not asked.
        case refused(Problem)
    }

    /// Asks for the answer, or whether one of the stored `entries` still holds.
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

    private func request(
        to origin: OriginAuthority, _ head: [UInt8], _ run: ActiveFetch
    ) -> OriginFetchRequest {
        let name = forwardedRequest.method
        let isSafe = MethodProperties(name.span, at: 0..<name.count).contains(.isSafe)
        var request = OriginFetchRequest(
            origin: origin, method: method, head: head, body: body, isSafeToRetry: isSafe)
        // What passes is bounded by its pieces, and by the time that nothing moves.
        request.bodyBytesMax = .max
        request.totalLimit = Self.totalLimit
        request.quotaHolders = run.client.map { [$0] } ?? []
        request.upgrade = forwardedRequest.upgrade
        if !request.upgrade.isEmpty { request.quotaHolders.append(.upgrades) }
        if !body.isEmpty { request.quotaHolders.append(.uploads) }
        return request
    }

    private static let totalLimit = Interval.seconds(86_400)

    private func imageOriginRequest(about entries: [MemoryEntry], _ run: ActiveFetch)
        -> OriginRequestResult
    {
        var validation = Validation()
        for entry in entries {
            validation.add(entry.head, metadata: entry.metadata, needsStrongDate: true)
        }
        let request = policy.request(
            for: key, negotiation, validation.lines, cause: run.correlation)
        // What is stored is not believed so far that it could end the node.
        guard var request else {
            return .refused(.originFailed(.malformed("no request can be made")))
        }
        request.quotaHolders = run.client.map { [$0] } ?? []
        return .request(request)
    }
}
