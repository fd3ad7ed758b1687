import Ground
import HTTPRules
import Serving
import Store
import Telemetry
import Wire

/// Requests that memory cannot serve within the read that brought them.
extension RequestHandler {
    /// Responds on the slow path, from the result of the memory lookup.
    func respond(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ finding: SiteLookupResult, now: Instant
    ) {
        switch finding {
        case .found(let entry, .fresh):
            response.cacheResult = .hit
            send(entry, pending, facts, handling: .hit(.memory), now: now)
        case .found(let entry, .stale(let use)):
            response.cacheResult = .stale
            if use == .whileRevalidate {
                context.revalidateInBackground(
                    query, entry, cause: response.cause(pending), client: quotaHolder, now: now)
            }
            send(entry, pending, facts, handling: .stale(.memory), now: now)
        case .found(let entry, .mustValidate(let reason)):
            awaitResponse(query, pending, facts, .init(reason), stale: entry, now: now)
        case .found(_, .unusable):
            awaitResponse(query, pending, facts, .request, alone: true, now: now)
        case .hitForMiss:
            guard !query.cacheControl.isOnlyIfCached else {
                return response.sendProblem(.notCached)
            }
            // A complete GET is fetched so that its response is stored once that is permitted.
            guard facts.isSelective || query.isExclusive else {
                return awaitResponse(query, pending, facts, .miss, alone: true, now: now)
            }
            pass(query.verbatimVariant, pending, facts, .miss, now: now)
        case .miss(let expected):
            let record = context.sendfileRecord(query, facts, response.writer, now)
            if let record { return response.send(record, now: now) }
            let glance = context.lookUpDiskImmediately(query)
            if case .hit(let entry) = glance {
                response.cacheResult = .disk
                return send(entry, pending, facts, handling: .hit(.disk), now: now)
            }
            awaitResponse(
                query, pending, facts, expected.isEmpty ? .uriMiss : .varyMiss, glance, now: now)
        }
    }

    /// Sends an entry, or the part of it that the request selects, and records its use.
    private func send(
        _ entry: MemoryEntry, _ pending: BufferedRequest, _ facts: RequestTraits,
        handling: CacheHandling, now: Instant
    ) {
        context.touch(entry, now: now)
        response.send(entry, to: pending, facts, handling: handling, now: now)
    }

    /// Waits for a response from the disk, other nodes, or the origin.
    ///
    /// - Parameters:
    ///   - query: the request to a site or for an image.
    ///   - pending: the buffered head of the request.
    ///   - facts: the traits of the request.
    ///   - reason: why memory did not serve the request, for Cache-Status.
    ///   - stale: the stored response to revalidate; `nil` for none.
    ///   - alone: true for a fetch that other requests do not share.
    ///   - glance: result of the immediate disk lookup; `nil` if there was none.
    ///   - now: the current time.
    private func awaitResponse(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, stale: MemoryEntry? = nil, alone: Bool = false,
        _ glance: ImmediateDiskLookup? = nil, now: Instant
    ) {
        let asksDisk =
            context.node.disk != nil && stale == nil && !alone && glance?.needsBlockingRead != false
        if query.cacheControl.isOnlyIfCached, !asksDisk { return response.sendProblem(.notCached) }
        // Responses to HEAD or with the client's no-store are not stored. Images are always fetched
        // completely.
        if !query.isImage, !asksDisk, facts.isHead || query.cacheControl.isNoStore {
            return pass(
                query.verbatimVariant, pending, facts,
                query.cacheControl.isNoStore ? .request : reason,
                now: now)
        }
        let waiting = begin(query, pending, facts, reason, now: now)
        waiting.name =
            context.node.disk == nil ? nil : glance?.name ?? EntryName(ofKey: query.key)
        waiting.asksDisk = asksDisk
        waiting.enqueueFetch(alone: alone || query.isExclusive)
    }

    /// Forwards a request with a separate fetch; an OPTIONS request addressed to this node is
    /// answered here.
    func pass(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, now: Instant
    ) {
        if query.method == .options, query.isForThisNode {
            closeAfterBody()
            return response.sendText(
                status: 200, contentType: "text/plain", [], fields: "Allow: GET, HEAD, OPTIONS\r\n")
        }
        let waiting = begin(query, pending, facts, reason, now: now)
        if !query.body.isEmpty { waiting.beginUpload(expectsContinue: parser.expectsContinue) }
        waiting.enqueueFetch(alone: true)
    }

    /// Begins a response that waits.
    private func begin(
        _ query: SiteRequest, _ pending: BufferedRequest, _ facts: RequestTraits,
        _ reason: CacheHandling.Reason, now: Instant
    ) -> PendingResponse {
        let waiting = PendingResponse(
            of: self, to: pending, query, facts: facts, reason: reason, now: now)
        pendingResponse = waiting
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
