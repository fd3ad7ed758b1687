import Ground
import HTTPRules
import Serving
import Store
import Telemetry
import Wire

/// A client's request that is not a plain memory hit: a full lookup decides how it is served.
struct LookupRequest {
    /// The handler that received the request.
    let handler: RequestHandler
    /// The request as received.
    let received: BufferedRequest
    /// The request as the cache and the origin see it.
    private(set) var query: SiteRequest
    /// Traits of the request, such as conditions and ranges.
    let facts: RequestTraits

    private var response: ResponseSender { handler.response }
    private var context: EventLoopContext { handler.context }

    /// Creates the request in the parser of `handler`, of which `received` is a copy.
    init(_ received: BufferedRequest, as query: SiteRequest, of handler: RequestHandler) {
        self.handler = handler
        self.received = received
        self.query = query
        facts = RequestTraits(handler.parser)
    }

    /// The request in the form that is forwarded unchanged, for a response that is not stored.
    private var verbatim: LookupRequest {
        var copy = self
        copy.query = query.verbatimVariant
        return copy
    }

    /// Responds from the result of the memory lookup.
    func respond(_ finding: SiteLookupResult, now: Instant) {
        switch finding {
        case .found(let entry, .fresh):
            send(entry, as: .hit, handling: .hit(.memory), now: now)
        case .found(let entry, .stale(let use)):
            if use == .whileRevalidate {
                context.revalidateInBackground(
                    query, entry, cause: response.cause(received), client: handler.quotaHolder,
                    now: now)
            }
            send(entry, as: .stale, handling: .stale(.memory), now: now)
        case .found(let entry, .mustValidate(let reason)):
            awaitResponse(.init(reason), stale: entry, now: now)
        case .found(_, .unusable): awaitResponse(.request, alone: true, now: now)
        case .hitForMiss:
            guard !query.cacheControl.isOnlyIfCached else {
                return response.sendProblem(.notCached)
            }
            // A complete GET is fetched so that its response is stored once that is permitted.
            guard facts.isSelective || query.isExclusive else {
                return awaitResponse(.miss, alone: true, now: now)
            }
            verbatim.pass(.miss, now: now)
        case .miss(let expected):
            if let record = sendfileRecord(now: now) { return response.send(record, now: now) }
            let glance = context.pageCache.lookUp(query)
            if case .hit(let entry) = glance {
                return send(entry, as: .disk, handling: .hit(.disk), now: now)
            }
            awaitResponse(expected.isEmpty ? .uriMiss : .varyMiss, glance, now: now)
        }
    }

    /// Sends an entry, or the part of it that the request selects, and records its use.
    private func send(
        _ entry: MemoryEntry, as outcome: CacheOutcome, handling: CacheHandling, now: Instant
    ) {
        response.cacheResult = outcome
        context.touch(entry, now: now)
        response.send(entry, to: received, facts, handling: handling, now: now)
    }

    /// Returns the record of a site's response that can be sent from the page cache; `nil` if there
    /// is none, and for an image, which was looked for before.
    private func sendfileRecord(now: Instant) -> SendfileRecord? {
        guard !query.isImage else { return nil }
        return context.pageCache.sendfileRecord(
            query.key, query.hash, query.share, facts, response.writer, now
        ) { query.reuse($0, now: now) == .fresh }
    }

    /// Waits for a response from the disk, other nodes, or the origin.
    ///
    /// With only-if-cached, the request is refused unless the disk is read. For a site, HEAD and
    /// no-store are passed on instead.
    ///
    /// - Parameters:
    ///   - reason: why memory did not serve the request, for Cache-Status.
    ///   - stale: the stored response to revalidate; `nil` for none.
    ///   - alone: true for a fetch that other requests do not share.
    ///   - glance: result of the immediate disk lookup; `nil` if there was none.
    ///   - now: the current time.
    private func awaitResponse(
        _ reason: CacheHandling.Reason, stale: MemoryEntry? = nil, alone: Bool = false,
        _ glance: ImmediateDiskLookup? = nil, now: Instant
    ) {
        let hasDisk = context.node.disk != nil
        let asksDisk = hasDisk && stale == nil && !alone && glance?.needsBlockingRead != false
        if query.cacheControl.isOnlyIfCached, !asksDisk { return response.sendProblem(.notCached) }
        // Responses to HEAD or with the client's no-store are not stored. Images are always fetched
        // completely.
        let isNoStore = query.cacheControl.isNoStore
        if !query.isImage, !asksDisk, facts.isHead || isNoStore {
            return verbatim.pass(isNoStore ? .request : reason, now: now)
        }
        let waiting = begin(reason, now: now)
        waiting.name = hasDisk ? glance?.name ?? EntryName(ofKey: query.key) : nil
        waiting.asksDisk = asksDisk
        waiting.enqueueFetch(alone: alone || query.isExclusive)
    }

    /// Forwards the request with a fetch of its own; an OPTIONS request addressed to this node is
    /// answered here.
    func pass(_ reason: CacheHandling.Reason, now: Instant) {
        if query.method == .options, query.isForThisNode {
            handler.closeAfterBody()
            return response.sendText(
                status: 200, contentType: "text/plain", [], fields: "Allow: GET, HEAD, OPTIONS\r\n")
        }
        let waiting = begin(reason, now: now)
        if !query.body.isEmpty {
            waiting.beginUpload(expectsContinue: handler.parser.expectsContinue)
        }
        waiting.enqueueFetch(alone: true)
    }

    /// Begins a response that waits.
    private func begin(_ reason: CacheHandling.Reason, now: Instant) -> PendingResponse {
        let waiting = PendingResponse(to: self, reason: reason, now: now)
        handler.pendingResponse = waiting
        return waiting
    }
}

extension CacheHandling.Reason {
    /// The reason as RFC 9211 §2.2 names it.
    fileprivate init(_ reason: ValidationReason) {
        switch reason {
        case .stale, .noCache: self = .stale
        case .requestNoCache, .requestMaxAge, .requestMinFresh: self = .request
        }
    }
}
