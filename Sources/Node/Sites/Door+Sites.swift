import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Requests to sites.
extension Door {
    @inline(__always)
    var hasSites: Bool { hall.hasSites }

    /// True if the request that the parser holds is for a site.
    func isOfSite(_ bytes: Span<UInt8>) -> Bool {
        side != .admin && hasSites && site(bytes) != nil
    }

    /// The number of the site that the request is for: a named one for everything on its host, `*`
    /// for what the node itself has nothing at (DESIGN.md §5).
    func site(_ bytes: Span<UInt8>) -> Int? {
        guard let number = settings.sites.find(bytes, at: askedHost, isSecure: isSecure)
        else { return nil }
        guard number == hall.otherSite else { return number }
        return isOurs(bytes) ? nil : number
    }

    /// True for what the node answers itself, also where a site `*` answers for every host.
    private func isOurs(_ bytes: Span<UInt8>) -> Bool {
        if settings.servesImages {
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return true
            }
        }
        return isPublicPage(bytes)
    }

    /// The key that a site was asked for by the request that waits; nil for an image.
    var waitingKey: [UInt8]? { siteCounters == nil ? nil : answeredKey }

    /// Answers the request for the site with this number.
    func answerSite(_ bytes: Span<UInt8>, _ number: Int, now: Instant) {
        let plan = settings.sitePlans[number]
        siteCounters = hall.siteCounters[number]
        if parser.method == .purge { return answerPurge(bytes, at: plan) }
        if plan.isSigned, side == .data, !admits(bytes, to: plan) { return }
        if settings.decisionToken != nil { tellsDecision = asksForDecision(bytes) }
        if parser.fields.present.contains(.upgrade), answersUpgrade(bytes, plan, now: now) {
            return
        }
        let isRead = parser.method == .get || isHeadRequest
        guard isRead, parser.framing == .none, plan.settings.methods.isEmpty else {
            return passSite(bytes, plan, now: now)
        }
        // The array is taken out while a span of it is in use, and put back with what room it has
        // grown.
        var key = scratch
        scratch = []
        let isMade = plan.makeKey(
            bytes, host: askedHost, path: parser.path.range, isSecure: isSecure, &key)
        if isMade {
            answerSite(bytes, plan, key: key.span, now: now)
        } else {
            answerProblem(.malformed(.invalidHost))
        }
        scratch = key
    }

    /// The path of a memory hit; whatever is slower leaves it.
    @inline(__always)
    private func answerSite(
        _ bytes: Span<UInt8>, _ plan: SitePlan, key: Span<UInt8>, now: Instant
    ) {
        let range = 0..<key.count
        let hash = hall.hash(key, range)
        let facts = RequestFacts(parser)
        guard !tellsDecision, parser.fields.present.isDisjoint(with: Self.deciding),
            var resident = hall.find(key, range, hash: hash),
            hall.judge(resident.facts, for: facts, now: now) != .revalidate
        else {
            return answerSiteSlowly(bytes, plan, key: key.copy(range), hash: hash, now: now)
        }
        if !resident.facts.flags.isAnswer {
            guard
                let found = hall.variant(
                    of: resident, by: plan, parser, bytes, headRange, key: key, facts, now: now)
            else {
                return answerSiteSlowly(bytes, plan, key: key.copy(range), hash: hash, now: now)
            }
            resident = found
        }
        part = .hit
        hall.touch(resident, now: now)
        guard facts.isSelective, resident.status == 200 else {
            return sendWhole(resident, note: .hit(.memory), isHead: isHeadRequest, now: now)
        }
        let selection = select(
            PendingRequest(copying: parser, bytes, headRange), facts, of: resident.facts,
            RenderedHead(resident))
        send(selection, of: resident, note: .hit(.memory), isHead: isHeadRequest, now: now)
    }

    /// Fields by which a request decides what of the stored may be used, beyond what every hit
    /// looks at.
    private static let deciding: FieldSet = {
        var set = FieldSet()
        for name in [FieldName.cacheControl, .pragma, .authorization] { set.insert(name) }
        return set
    }()

    /// Answers from memory where it takes a second look, or waits.
    private func answerSiteSlowly(
        _ bytes: Span<UInt8>, _ plan: SitePlan, key: [UInt8], hash: UInt64, now: Instant
    ) {
        let pending = PendingRequest(copying: parser, bytes, headRange)
        let query = siteRequest(plan, key, hash, pending, bytes, mode: .whole)
        if query.hasComeBack(to: hall.node) { return refuseSite(.loop) }
        let finding = query.find(in: hall.store, now: now)
        if tellsDecision { tellDecision(of: query, finding, now: now) }
        answer(query, pending, RequestFacts(parser), finding, now: now)
    }

    // MARK: What passes by the cache

    /// Asks the origin what the client asks, `upgrade` included, and passes the answer on.
    func passSite(
        _ bytes: Span<UInt8>, _ plan: SitePlan, upgrade: [UInt8] = [], now: Instant
    ) {
        let method = parser.methodName.range
        switch parser.method {
        case .connect: return refuseSite(.notServed("CONNECT", plan.settings.methods))
        // It would tell a script what this node adds for the origin alone (RFC 9110 §9.3.8).
        case .trace: return refuseSite(.notServed("TRACE", plan.settings.methods))
        default: break
        }
        guard plan.settings.takes(method: bytes, at: method) else {
            return refuseSite(.methodNotAllowed(plan.settings.methods))
        }
        let isRead = parser.method == .get || isHeadRequest
        var key: [UInt8] = []
        let isKey = plan.makeKey(
            bytes, host: askedHost, path: parser.path.range, isSecure: isSecure, &key)
        // Without a key nothing could be told apart that is read; anything else is under none.
        guard isKey || !isRead else { return answerProblem(.malformed(.invalidHost)) }
        let hash = hall.store.hash(of: key)
        if isRead, parser.framing == .none, upgrade.isEmpty {
            return answerSiteSlowly(bytes, plan, key: key, hash: hash, now: now)
        }
        let pending = PendingRequest(copying: parser, bytes, headRange)
        let query = siteRequest(
            plan, key, hash, pending, bytes, upgrade: upgrade, mode: .verbatim)
        if query.hasComeBack(to: hall.node) { return refuseSite(.loop) }
        pass(query, pending, RequestFacts(parser), isRead ? .request : .method, now: now)
    }

    /// Refuses the request that the parser holds, whose body nobody reads.
    func refuseSite(_ problem: Problem) {
        closeBehindBody()
        answerProblem(problem)
    }

    /// What follows the head is a body, and must not be taken for the next request.
    func closeBehindBody() {
        if parser.framing != .none, parser.framing != .length(0) { closesAfterAnswer = true }
    }

    func pass(
        _ query: SiteRequest, _ pending: PendingRequest, _ facts: RequestFacts,
        _ reason: CacheNote.Reason, now: Instant
    ) {
        if query.method == .options, query.isForUs {
            closeBehindBody()
            return sendText(
                status: 200, contentType: "text/plain", [], fields: "Allow: GET, HEAD, OPTIONS\r\n")
        }
        let waiting = wait(for: query, pending, facts, reason, now: now)
        if !query.body.isEmpty { beginUpload() }
        enter(waiting, alone: true)
    }

    /// The request that the parser holds, as its fetch and its readers need it.
    private func siteRequest(
        _ plan: SitePlan, _ key: [UInt8], _ hash: UInt64, _ pending: PendingRequest,
        _ bytes: Span<UInt8>, upgrade: [UInt8] = [], mode: SiteRequest.Mode
    ) -> SiteRequest {
        let present = parser.fields.present
        let isControlled =
            plan.settings.honoursRequestControl
            && (present.contains(.cacheControl) || present.contains(.pragma))
        return SiteRequest(
            plan, key: key, hash: hash,
            lines: RequestLines(bytes: pending.head, lines: withoutToken(pending)),
            method: parser.method,
            asked: ForwardedRequest(of: self, bytes, plan, upgrade: upgrade),
            control: isControlled
                ? RequestControl(lines: pending.lines, in: pending.head.span) : .none,
            hasAuthorization: present.contains(.authorization),
            hasCookie: present.contains(.cookie),
            body: RequestBody(parser.framing) ?? .none, mode: mode,
            counters: hall.siteCounters[plan.number], share: hall.share(of: plan),
            fence: hall.fence)
    }
}

extension ForwardedRequest {
    /// The request that the parser of `door` holds, as the origin is told.
    fileprivate init(
        of door: Door, _ bytes: Span<UInt8>, _ plan: SitePlan, upgrade: [UInt8]
    ) {
        let isWhole = door.parser.form == .asterisk
        let path = isWhole ? door.parser.target.range : door.parser.path.range
        self.init(
            method: bytes.copy(door.parser.methodName.range),
            target: plan.target(bytes, path: path),
            host: plan.host(bytes, at: door.askedHost, isSecure: door.isSecure),
            client: door.clientAddress, peer: door.client?.address, isSecure: door.isSecure,
            version: door.carriage == .http2 ? "2" : door.parser.isHTTP10 ? "1.0" : "1.1")
        self.upgrade = upgrade
    }
}
