import Ground
import HTTPRules
import Origin
import Serving
import Store
import Telemetry
import Wire

/// A request to a site, or for an image, as its look-ups, its fetch and its readers need it.
final class SiteRequest: Sendable {
    let plan: SitePlan
    /// Under which the site's answer stands, variants apart, as `SiteKey` makes it.
    ///
    /// Empty if it has none.
    let key: [UInt8]
    /// The keyed hash of ``key``.
    let hash: UInt64
    /// What the request for an image is reduced to, of which ``told`` is made; empty for a site.
    let negotiation: Negotiation
    /// The field lines as the client sent them.
    let lines: RequestLines
    /// The same as the origin is told of them, by which variants are selected.
    let told: RequestLines
    let method: RequestMethod
    /// What the origin is told beside the fields.
    let asked: ForwardedRequest
    /// What a peer has forwarded; nil for a client's own request.
    let relayed: RelayedRequest?
    let control: RequestControl
    let hasAuthorization: Bool
    let hasCookie: Bool
    let body: RequestBody
    /// How much of what the client asked reaches the origin.
    let mode: Mode
    /// No client waits for it.
    let isBackground: Bool
    /// Nil for images, which are in the counts of the node alone.
    let counters: SiteCounters?
    /// The site's part of the memory; nil if it may take all of it.
    let share: MemoryShare?
    let fence: FenceGate

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
        _ plan: SitePlan, key: [UInt8], hash: UInt64, lines: RequestLines, method: RequestMethod,
        asked: ForwardedRequest, control: RequestControl, hasAuthorization: Bool,
        hasCookie: Bool, body: RequestBody, mode: Mode, counters: SiteCounters?,
        share: MemoryShare?,
        fence: FenceGate, isBackground: Bool = false, negotiation: Negotiation = [],
        relayed: RelayedRequest? = nil
    ) {
        self.negotiation = negotiation
        self.relayed = relayed
        self.isBackground = isBackground
        self.fence = fence
        self.plan = plan
        self.key = key
        self.hash = hash
        self.lines = lines
        told = plan.images == nil && relayed == nil ? plan.told(asked, lines) : lines
        self.method = method
        self.asked = asked
        self.control = control
        self.hasAuthorization = hasAuthorization
        self.hasCookie = hasCookie
        self.body = body
        self.mode = mode
        self.counters = counters
        self.share = share
    }

    /// An image that is asked for by its URL, `key`.
    convenience init(
        image key: [UInt8], hash: UInt64, _ negotiation: Negotiation, on hall: Hall
    ) {
        let plan = hall.settings.images.plan(ofKey: key.span)
        self.init(
            plan, key: key, hash: hash, lines: plan.told(negotiation), method: .get,
            asked: ForwardedRequest(
                method: ForwardedRequest.get, target: [], host: [], client: nil, peer: nil),
            control: .none, hasAuthorization: false, hasCookie: false, body: .none, mode: .whole,
            counters: nil, share: hall.share(of: plan), fence: hall.fence,
            negotiation: negotiation)
    }

    /// What a peer has forwarded, for a key that this node owns.
    convenience init(
        _ relayed: RelayedRequest, key: [UInt8], hash: UInt64, by plan: SitePlan, on hall: Hall
    ) {
        let told = RequestLines(written: relayed.head)
        self.init(
            plan, key: key, hash: hash, lines: told, method: .get,
            asked: ForwardedRequest(
                method: ForwardedRequest.get, target: [], host: [], client: nil, peer: nil,
                isSecure: relayed.flags.contains(.isSecure)),
            control: .none, hasAuthorization: relayed.flags.contains(.hasAuthorization),
            hasCookie: relayed.flags.contains(.hasCookie), body: .none, mode: .whole,
            counters: hall.siteCounters[plan.number], share: hall.share(of: plan),
            fence: hall.fence, relayed: relayed)
    }

    var isImage: Bool { plan.images != nil }

    var base: SiteBase { SiteBase(key: key, hash: hash, share: share) }

    /// Another node may be asked in the place of the origin.
    ///
    /// Not if the client has a say in what it may be given, or if hardly anybody else may be given
    /// it.
    var isShared: Bool {
        guard plan.settings.isShared else { return false }
        return isImage
            || isGet && mode == .whole && !isAlone && control.isEmpty
                // Another node may wait for this very request.
                && (relayed != nil || !cameThroughNode)
    }

    /// The origin may be sent it, as far as its site's policy goes.
    private var isSendable: Bool {
        guard relayed == nil else { return true }
        let bytes = lines.bytes
        let outcome = RequestForwarder.forward(
            asked, lines.lines, in: bytes.span, rules: plan.requestRules, purpose: .pass)
        guard case .send = outcome else { return false }
        return true
    }

    /// What another node is told of it: of an image, of which the key says all, the digest of its
    /// settings, if something is said of them; nil if the origin may not be sent it.
    func relay(through node: NodeCore, for client: ShareHolder?) -> [UInt8]? {
        if isImage {
            var bytes: [UInt8] = []
            if plan.digest != 0 { bytes.appendLittle(plan.digest) }
            return bytes
        }
        guard isSendable else { return nil }
        var head = told.bytes
        // It may come back through an origin that leads to this cluster.
        if relayed == nil, let passage = passage(through: node) {
            CDNLoop.append(passage, to: &head)
        }
        var flags = relayed?.flags ?? []
        if asked.isSecure { flags.insert(.isSecure) }
        if hasAuthorization { flags.insert(.hasAuthorization) }
        if hasCookie { flags.insert(.hasCookie) }
        if takesTrailers { flags.insert(.takesTrailers) }
        var address: IPAddress?
        if case .client(let known) = client { address = known }
        return RelayedRequest(policy: plan.digest, flags, client: address, head: head).bytes
    }

    /// What decides which fetches may serve it.
    var candidate: Lookup.Candidate {
        Lookup.Candidate(
            told, hasControl: !control.isEmpty, wantsValidation: wantsValidation)
    }

    /// The client reads trailer fields (RFC 9110 §6.5.1).
    var takesTrailers: Bool { relayed?.flags.contains(.takesTrailers) ?? lines.takesTrailers }

    var isGet: Bool { method == .get }
    var isHead: Bool { method == .head }

    /// It is given nothing whose request began before it came (RFC 9111 §5.2.1.4).
    var wantsValidation: Bool { control.isNoCache || control.maxAge == .zero }

    /// Nobody waits for its fetch, and it waits for nobody's: the answer would not be the others'.
    var isAlone: Bool {
        isHead || hasAuthorization || control.isNoStore || control.isOnlyIfCached
    }

    /// As the origin is asked: an answer to HEAD is not stored, nor is what the client forbids to
    /// be.
    var asAsked: SiteRequest { isHead || control.isNoStore ? passing : self }

    /// The same for an answer that is not stored.
    var passing: SiteRequest { asked(in: .verbatim) }

    /// The same for an answer that may be a part.
    var inPart: SiteRequest { asked(in: .part) }

    private func asked(in mode: Mode) -> SiteRequest {
        SiteRequest(
            plan, key: key, hash: hash, lines: lines, method: method, asked: asked,
            control: control, hasAuthorization: hasAuthorization, hasCookie: hasCookie, body: body,
            mode: mode, counters: counters, share: share, fence: fence, negotiation: negotiation,
            relayed: relayed)
    }

    /// A client wants less than the whole of what it is that may be stored; of more ranges than
    /// `rangesMax` it gets the whole.
    func wantsPart(rangesMax: Int) -> Bool {
        guard mode == .whole, isGet, !isBackground, !control.isNoStore else { return false }
        let bytes = lines.bytes
        return RangeSet.isPart(lines.lines, in: bytes.span, countMax: rangesMax)
    }

    /// The same GET without what this client alone wants of its caches.
    var inBackground: SiteRequest {
        SiteRequest(
            plan, key: key, hash: hash, lines: lines, method: .get, asked: asked.asGet,
            control: .none, hasAuthorization: hasAuthorization, hasCookie: hasCookie, body: .none,
            mode: .whole, counters: counters, share: share, fence: fence,
            isBackground: true, negotiation: negotiation, relayed: relayed)
    }

    /// Its passage through this process; nil if it has no key, and is told apart from no other.
    func passage(through node: NodeCore) -> CDNLoop.Passage? {
        guard !key.isEmpty else { return nil }
        let request = EntryName(ofKey: asked.method + key).digest.first
        return CDNLoop.Passage(process: node.run, request: request)
    }

    /// Another node, or this one, has asked for it.
    var cameThroughNode: Bool {
        let bytes = lines.bytes
        return CDNLoop.count(lines.lines, in: bytes.span) > 0
    }

    /// It is this node that asked for it: whoever waited for its fetch would wait for themselves.
    func hasComeBack(to node: NodeCore) -> Bool {
        guard cameThroughNode, let passage = passage(through: node) else { return false }
        let bytes = lines.bytes
        return CDNLoop.holds(passage, lines.lines, in: bytes.span)
    }

    /// Max-Forwards says that this node is the one that is asked (RFC 9110 §7.6.2).
    var isForUs: Bool {
        let bytes = lines.bytes
        let outcome = RequestForwarder.forward(
            asked, lines.lines, in: bytes.span, rules: plan.requestRules, purpose: .pass)
        return outcome == .answerHere
    }

    /// What an entry that was selected for it is good for.
    func reuse(_ facts: EntryFacts, now: Instant) -> Reuse {
        Serving.reuse(
            fence.facts(facts, now: now), for: control, hasAuthorization: hasAuthorization,
            policy: plan.reuse, now: now)
    }

    /// True if an entry may be given in the stead of an origin that fails.
    func standsIn(_ facts: EntryFacts, now: Instant) -> Bool {
        Serving.standsIn(
            fence.facts(facts, now: now), for: control, policy: plan.reuse, now: now)
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
