import Admin
import Ground
import HTTPRules
import Platform
import Serving
import Store
import Telemetry
import Wire

/// Requests to sites.
extension RequestHandler {
    /// Returns true if the request in the parser is for a site.
    func isSiteRequest(_ bytes: Span<UInt8>) -> Bool {
        plane != .admin && context.hasSites && siteNumber(bytes) != nil
    }

    /// Returns the number of the site that the request is for; `nil` for none.
    ///
    /// A named site serves everything on its host; the site `*` serves everything that the node
    /// itself does not (Design, "Safe by default").
    func siteNumber(_ bytes: Span<UInt8>) -> Int? {
        guard let number = settings.sites.find(bytes, at: requestedHost, isSecure: isSecure)
        else { return nil }
        guard number == context.defaultSite else { return number }
        return isServedByNode(bytes) ? nil : number
    }

    /// Returns true for a target that the node itself serves, also under the site `*`.
    @inline(__always)
    private func isServedByNode(_ bytes: Span<UInt8>) -> Bool {
        if settings.servesImages {
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return true
            }
        }
        return AdminRoute.isPublicPage(bytes, at: parser.path.range)
    }

    /// Responds to a request for the site with this number.
    func respondFromSite(_ bytes: Span<UInt8>, _ number: Int, now: Instant) {
        let plan = settings.sitePolicies[number]
        response.siteCounters = context.siteCounters[number]
        if parser.method.isPurge { return handlePurge(bytes, at: plan) }
        if plan.isSigned, plane == .data, !verifySignature(bytes, to: plan) { return }
        if let token = settings.decisionToken {
            response.includesDecision = DecisionTrace.isRequested(by: parser, bytes, token: token)
        }
        if parser.fields.present.contains(.upgrade), handleUpgrade(bytes, plan, now: now) {
            return
        }
        let isRead = parser.method == .get || parser.method == .head
        guard isRead, parser.framing == .none, plan.settings.methods.isEmpty else {
            return passSite(bytes, plan, now: now)
        }
        // The array is moved out while a span of it is in use, and put back with its capacity.
        var key = scratch
        scratch = []
        let isMade = plan.makeKey(
            bytes, host: requestedHost, path: parser.path.range, isSecure: isSecure, &key)
        if isMade {
            respondFromSite(bytes, plan, key: key.span, now: now)
        } else {
            response.sendProblem(.malformed(.invalidHost))
        }
        scratch = key
    }

    /// Responds from a site: the path of a memory hit, which slower cases leave.
    @inline(__always)
    private func respondFromSite(
        _ bytes: Span<UInt8>, _ plan: SitePolicy, key: Span<UInt8>, now: Instant
    ) {
        let range = 0..<key.count
        let hash = context.hash(key, range)
        let facts = RequestTraits(parser)
        guard !response.includesDecision,
            parser.fields.present.isDisjoint(with: Self.cacheControlFields),
            var entry = context.find(key, range, hash: hash),
            context.evaluate(entry.metadata, for: facts, now: now) != .revalidate
        else {
            return respondFromSiteSlowPath(bytes, plan, key: key.copy(range), hash: hash, now: now)
        }
        if !entry.metadata.flags.isResponse {
            guard
                let found = context.variant(
                    of: entry, by: plan, parser, bytes, headRange, key: key, facts, now: now)
            else {
                return respondFromSiteSlowPath(
                    bytes, plan, key: key.copy(range), hash: hash, now: now)
            }
            entry = found
        }
        sendHit(entry, bytes, facts, now: now)
    }

    /// Request fields that affect reuse beyond those that every hit evaluates.
    private static let cacheControlFields: FieldSet = {
        var set = FieldSet()
        for name in [FieldName.cacheControl, .pragma, .authorization] { set.insert(name) }
        return set
    }()

    /// Responds on the slow path, with a full lookup.
    private func respondFromSiteSlowPath(
        _ bytes: Span<UInt8>, _ plan: SitePolicy, key: [UInt8], hash: UInt64, now: Instant
    ) {
        let received = BufferedRequest(copying: parser, bytes, headRange)
        let query = SiteRequest(of: self, plan, key, hash, received, bytes, mode: .whole)
        if query.isLoop(at: context.node) { return rejectSiteRequest(.loopDetected) }
        let finding = query.find(in: context.store, now: now)
        if response.includesDecision {
            response.setDecision(DecisionTrace(of: query, finding, in: context.store, now: now))
        }
        LookupRequest(received, as: query, of: self).respond(finding, now: now)
    }

    // MARK: Requests that bypass the cache

    /// Forwards the request, with the protocols in `upgrade`, and passes the response on; a GET or
    /// HEAD without body and upgrade is looked up instead.
    func passSite(
        _ bytes: Span<UInt8>, _ plan: SitePolicy, upgrade: [UInt8] = [], now: Instant
    ) {
        if let refusal = plan.methodRefusal(parser, bytes) { return rejectSiteRequest(refusal) }
        let isRead = parser.method == .get || parser.method == .head
        var key: [UInt8] = []
        let isKey = plan.makeKey(
            bytes, host: requestedHost, path: parser.path.range, isSecure: isSecure, &key)
        // Requests that read must have a key to be distinguished; others are stored under none.
        guard isKey || !isRead else { return response.sendProblem(.malformed(.invalidHost)) }
        let hash = context.store.hash(of: key)
        if isRead, parser.framing == .none, upgrade.isEmpty {
            return respondFromSiteSlowPath(bytes, plan, key: key, hash: hash, now: now)
        }
        let received = BufferedRequest(copying: parser, bytes, headRange)
        let query = SiteRequest(
            of: self, plan, key, hash, received, bytes, upgrade: upgrade, mode: .verbatim)
        if query.isLoop(at: context.node) { return rejectSiteRequest(.loopDetected) }
        LookupRequest(received, as: query, of: self)
            .pass(isRead ? .request : .method, now: now)
    }

    /// Refuses the request in the parser, whose body is not read.
    func rejectSiteRequest(_ problem: Problem) {
        closeAfterBody()
        response.sendProblem(problem)
    }

    /// Closes the connection after the response if a body follows the head, so that it is not taken
    /// for the next request.
    func closeAfterBody() {
        if parser.framing != .none, parser.framing != .length(0) {
            response.closesAfterResponse = true
        }
    }
}

extension SiteRequest {
    /// Creates the request in the handler's parser, of which `pending` is a copy.
    fileprivate convenience init(
        of handler: RequestHandler, _ plan: SitePolicy, _ key: [UInt8], _ hash: UInt64,
        _ pending: BufferedRequest, _ bytes: Span<UInt8>, upgrade: [UInt8] = [], mode: Mode
    ) {
        let context = handler.context
        let present = handler.parser.fields.present
        let isControlled =
            plan.settings.honoursRequestControl
            && (present.contains(.cacheControl) || present.contains(.pragma))
        // The operator's token is for this node only.
        let lines =
            context.settings.decisionToken == nil
            ? pending.lines
            : DecisionTrace.removingRequest(from: pending.lines, in: pending.head.span)
        self.init(
            plan, key: key, hash: hash, lines: RequestFields(bytes: pending.head, lines: lines),
            method: handler.parser.method,
            asked: ForwardedRequest(of: handler, bytes, plan, upgrade: upgrade),
            control: isControlled
                ? RequestCacheControl(lines: pending.lines, in: pending.head.span) : .none,
            hasAuthorization: present.contains(.authorization),
            hasCookie: present.contains(.cookie),
            body: RequestBodyFraming(handler.parser.framing) ?? .none, mode: mode,
            counters: context.siteCounters[plan.number], share: context.share(of: plan),
            fence: context.fence)
    }
}

extension ForwardedRequest {
    /// Creates the forwarded form of the request in the handler's parser.
    fileprivate init(
        of handler: RequestHandler, _ bytes: Span<UInt8>, _ plan: SitePolicy, upgrade: [UInt8]
    ) {
        let isWhole = handler.parser.form == .asterisk
        let path = isWhole ? handler.parser.target.range : handler.parser.path.range
        self.init(
            method: bytes.copy(handler.parser.methodName.range),
            target: plan.forwardedTarget(bytes, path: path),
            host: plan.forwardedHost(bytes, at: handler.requestedHost, isSecure: handler.isSecure),
            client: handler.clientAddress, remoteAddress: handler.response.client?.address,
            isSecure: handler.isSecure,
            version: handler.response.protocolVersion == .http2
                ? "2" : handler.parser.isHTTP10 ? "1.0" : "1.1")
        self.upgrade = upgrade
    }
}

/// Requests that switch the connection to another protocol, such as WebSocket.
extension RequestHandler {
    /// Handles the request in the parser, which has the field Upgrade; returns false if it is to be
    /// handled like any other.
    func handleUpgrade(_ bytes: Span<UInt8>, _ plan: SitePolicy, now: Instant) -> Bool {
        switch plan.upgrade(BufferedRequest(copying: parser, bytes, headRange), parser.framing) {
        case .none: return false
        case .forwarded(let protocols): passSite(bytes, plan, upgrade: protocols, now: now)
        case .refused:
            context.counters.add(.upgradesRefused)
            rejectSiteRequest(.upgradeRefused(plan.settings.upgrades))
        }
        return true
    }
}

extension SitePolicy {
    /// Returns the refusal of a request whose method the site does not serve; `nil` if it does.
    fileprivate func methodRefusal(
        _ parser: borrowing RequestParser, _ bytes: Span<UInt8>
    ) -> Problem? {
        switch parser.method {
        case .connect: .notServed("CONNECT", settings.methods)
        // The response would show a script fields that this node adds for the origin only (RFC 9110
        // §9.3.8).
        case .trace: .notServed("TRACE", settings.methods)
        case _ where settings.allows(method: bytes, at: parser.methodName.range): nil
        default: .methodNotAllowed(settings.methods)
        }
    }

    /// Returns how to handle a request with the field Upgrade.
    fileprivate func upgrade(_ request: BufferedRequest, _ framing: BodyFraming) -> Upgrade {
        Upgrade(
            request.lines, in: request.head.span, isHTTP10: request.isHTTP10,
            hasBody: framing != .none && framing != .length(0), allowed: settings.upgrades)
    }
}
