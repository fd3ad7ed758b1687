import Ground
import HTTPRules
import NIOCore
import Peering
import Serving
import Store
import Telemetry
import Wire

extension RequestHandler {
    /// Responds to the request in the parser, whose head lies in `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: the buffer that contains the request head.
    ///   - body: body of an admin request; request bodies to sites are forwarded as they arrive.
    ///   - now: the current time.
    func respond(_ bytes: Span<UInt8>, body: [UInt8] = [], now: Instant) {
        response.closesAfterResponse = response.isDraining || !parser.isPersistent
        response.isHeadRequest = parser.method == .head
        response.isHTTP10 = parser.isHTTP10
        response.assignRequestID(parser.fields, bytes)
        if context.hasAccessLog, plane != .internalRequest {
            (response.status, response.bodyBytes) = (0, 0)
            beginLog(bytes, now: now)
        }
        response.cacheResult = .generated
        response.startedAt = now
        if let admin {
            return admin.respond(to: AdminRequest(of: self, bytes, body: body))
        }
        if response.siteCounters != nil { response.resetSite() }
        if context.hasSites {
            if let number = siteNumber(bytes) { return respondFromSite(bytes, number, now: now) }
            if !parser.method.isPurge,
                !settings.servesImages || !SiteKey.isAuthority(bytes, at: requestedHost)
            {
                return respondOutsideSites(bytes)
            }
        }
        guard parser.method == .get || parser.method == .head else {
            return parser.method.isPurge ? handlePurge(bytes) : respondOutsideSites(bytes)
        }
        if settings.signer != nil, plane == .data { return respondIfSigned(bytes, now: now) }
        switch ImageTarget.parse(bytes, at: parser.path.range) {
        case .image(let url):
            if CacheKey.isCanonical(bytes, at: url.range, bytesMax: settings.urlBytesMax) {
                respondWithImage(bytes, key: bytes, url.range, now: now)
            } else {
                respondWithImage(bytes, normalising: url, now: now)
            }
        case .notImage: respondOutsideSites(bytes)
        case .refused: respondIfSigned(bytes, now: now)
        }
    }

    /// Responds to a request whose head was copied because its body had to be read first; aborts if
    /// new settings make it unreadable or a site's.
    func respond(_ request: BufferedRequest, now: Instant) {
        // Parsed before, but limits may have changed since.
        guard case .head = parser.parse(request.head.span, from: 0) else { return abort() }
        read(request.head.span, 0..<request.head.count)
        // It became a site's request during the body, which would have been forwarded.
        if isSiteRequest(request.head.span) { return abort() }
        respond(request.head.span, body: request.body, now: now)
    }

    /// Interim response to a client that waits before it sends the body (RFC 9110 §15.2.1).
    static let continueResponse = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")

    /// Responds with an image whose URL is not in its canonical form.
    private func respondWithImage(_ bytes: Span<UInt8>, normalising url: Extent, now: Instant) {
        // The array is moved out while a span of it is in use, and put back with its capacity.
        var key = scratch
        scratch = []
        let result = CacheKey.normalise(
            percentEncoded: bytes, at: url.range, into: &key, bytesMax: settings.urlBytesMax)
        switch result {
        case .normalised: respondWithImage(bytes, key: key.span, 0..<key.count, now: now)
        case .refused(let refusal): response.sendProblem(.invalidURL(refusal))
        }
        scratch = key
    }

    /// Responds with an image: the path of a memory hit, which slower cases leave.
    @inline(__always)
    func respondWithImage(
        _ bytes: Span<UInt8>, key: Span<UInt8>, _ range: Range<Int>, now: Instant
    ) {
        let facts = RequestTraits(parser)
        let hash = context.hash(key, range)
        guard var entry = context.find(key, range, hash: hash) else {
            let record = context.pageCache.sendfileRecord(
                key.copy(range), hash, context.imageShare, facts, response.writer, now
            ) { context.evaluate($0, for: facts, now: now) == .serve }
            if let record { return response.send(record, now: now) }
            return respondWithImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
        }
        if !entry.metadata.flags.isResponse {
            guard
                let found = context.variant(
                    ofImage: entry, parser, bytes, key: key.extracting(range), facts, now: now)
            else {
                return respondWithImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
            }
            entry = found
        }
        guard context.evaluate(entry.metadata, for: facts, now: now) != .revalidate else {
            return respondWithImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
        }
        sendHit(entry, bytes, facts, now: now)
    }

    /// Sends a fresh entry from memory, or the part of it that the request selects.
    @inline(__always)
    func sendHit(
        _ entry: MemoryEntry, _ bytes: Span<UInt8>, _ facts: RequestTraits, now: Instant
    ) {
        response.cacheResult = .hit
        context.touch(entry, now: now)
        guard facts.isSelective, entry.status == 200 else {
            return response.sendWhole(
                entry, handling: .hit(.memory), isHead: response.isHeadRequest, now: now)
        }
        response.send(
            entry, to: BufferedRequest(copying: parser, bytes, headRange), facts,
            handling: .hit(.memory), now: now)
    }

    /// Responds on the slow path, with a full lookup.
    private func respondWithImageSlowly(
        _ bytes: Span<UInt8>, key: [UInt8], hash: UInt64, now: Instant
    ) {
        let received = BufferedRequest(copying: parser, bytes, headRange)
        let query = SiteRequest(
            image: key, hash: hash,
            NegotiationNormaliser(received.lines, in: received.head.span).negotiation,
            on: context)
        LookupRequest(received, as: query, of: self)
            .respond(query.find(in: context.store, now: now), now: now)
    }
}

extension RequestTraits {
    /// Creates the traits of a parsed request.
    @inline(__always)
    init(_ parser: borrowing RequestParser) {
        let present = parser.fields.present
        self.init(
            isHead: parser.method == .head,
            isConditional: !present.isDisjoint(with: Self.preconditions),
            isRanged: present.contains(.range))
    }

    private static let preconditions = Preconditions.fields
}
