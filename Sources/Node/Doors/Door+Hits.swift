import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

extension Door {
    /// Answers the request that the parser holds, whose head lies in `bytes`.
    ///
    /// `body` is that of an operator's request; what clients send to sites goes on as it comes.
    func answer(_ bytes: Span<UInt8>, body: [UInt8] = [], now: Instant) {
        closesAfterAnswer = isDraining || !parser.isPersistent
        isHeadRequest = parser.method == .head
        nameRequest(bytes)
        if hall.hasAccessLog, side != .errand {
            (answeredStatus, answeredBytes) = (0, 0)
            logged = LoggedRequest(
                parser, bytes, over: carriage, on: side, as: requestID, now)
        }
        part = .none
        startedAt = now
        guard side != .admin else { return answerAdmin(bytes, body: body) }
        if siteCounters != nil { forgetSite() }
        if hasSites {
            if let number = site(bytes) { return answerSite(bytes, number, now: now) }
            if parser.method != .purge,
                !settings.servesImages || !SiteKey.isAuthority(bytes, at: askedHost)
            {
                return answerOther(bytes)
            }
        }
        guard parser.method == .get || parser.method == .head else {
            return parser.method == .purge ? answerPurge(bytes) : answerOther(bytes)
        }
        if settings.signer != nil, side == .data { return answerSigned(bytes, now: now) }
        switch ImageTarget.parse(bytes, at: parser.path.range) {
        case .image(let url):
            if CacheKey.isCanonical(bytes, at: url.range, bytesMax: settings.urlBytesMax) {
                answerImage(bytes, key: bytes, url.range, now: now)
            } else {
                answerImage(bytes, normalising: url, now: now)
            }
        case .notImage: answerOther(bytes)
        case .refused: answerSigned(bytes, now: now)
        }
    }

    /// Answers a request whose head was copied, because a body that nobody wants stood between it
    /// and its answer.
    func answer(_ request: PendingRequest, now: Instant) {
        // It was read once; limits may have changed since.
        guard case .head = parser.parse(request.head.span, from: 0) else { return breakOff() }
        read(request.head.span, 0..<request.head.count)
        // Of a site the body would have gone to its origin; it became one while the body came.
        if isOfSite(request.head.span) { return breakOff() }
        answer(request.head.span, body: request.body, now: now)
    }

    /// Tells a client that waits for it to send the body (RFC 9110 §15.2.1).
    static let goOnAndSend = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")

    private func answerImage(_ bytes: Span<UInt8>, normalising url: Extent, now: Instant) {
        // The array is taken out while a span of it is in use, and put back with what room it has
        // grown.
        var key = scratch
        scratch = []
        let result = CacheKey.normalise(
            percentEncoded: bytes, at: url.range, into: &key, bytesMax: settings.urlBytesMax)
        switch result {
        case .made: answerImage(bytes, key: key.span, 0..<key.count, now: now)
        case .refused(let refusal): answerProblem(.url(refusal))
        }
        scratch = key
    }

    /// The path of a memory hit; whatever is slower leaves it.
    @inline(__always)
    func answerImage(
        _ bytes: Span<UInt8>, key: Span<UInt8>, _ range: Range<Int>, now: Instant
    ) {
        let facts = RequestFacts(parser)
        let hash = hall.hash(key, range)
        guard var resident = hall.find(key, range, hash: hash) else {
            let record = hall.recordToSend(key.copy(range), hash, facts, outlet, now)
            if let record { return give(record, now: now) }
            return answerImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
        }
        if !resident.facts.flags.isAnswer {
            guard
                let found = hall.variant(
                    ofImage: resident, parser, bytes, key: key.extracting(range), facts, now: now)
            else {
                return answerImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
            }
            resident = found
        }
        switch hall.judge(resident.facts, for: facts, now: now) {
        case .serve,
            .select where resident.status != 200:
            part = .hit
            hall.touch(resident, now: now)
            sendWhole(resident, note: .hit(.memory), isHead: isHeadRequest, now: now)
        case .select:
            part = .hit
            give(
                resident, PendingRequest(copying: parser, bytes, headRange), facts,
                note: .hit(.memory), now: now)
        case .revalidate:
            answerImageSlowly(bytes, key: key.copy(range), hash: hash, now: now)
        }
    }

    /// Answers where it takes a second look, or waits.
    private func answerImageSlowly(
        _ bytes: Span<UInt8>, key: [UInt8], hash: UInt64, now: Instant
    ) {
        let pending = PendingRequest(copying: parser, bytes, headRange)
        let query = SiteRequest(
            image: key, hash: hash,
            NegotiationRules(pending.lines, in: pending.head.span).negotiation,
            on: hall)
        answer(query, pending, RequestFacts(parser), query.find(in: hall.store, now: now), now: now)
    }

    var connectionNote: ConnectionNote {
        guard carriage == .http1 else { return .none }
        return closesAfterAnswer ? .close : parser.isHTTP10 ? .keepAlive : .none
    }

    /// Gives the whole of an entry.
    func sendWhole(_ resident: Resident, note: CacheNote, isHead: Bool, now: Instant) {
        beginAnswer(status: resident.status)
        if !note.isHit { addStatusLine(note, resident.facts, now: now) }
        let head = hall.heads.with { buffer in
            let room =
                resident.text.count + extraLines.count + HeadWriter.linesBytesMax
            buffer.writeHead(room: room) { writer in
                writer.append(resident.text, from: resident.headStart)
                if !extraLines.isEmpty { writer.append(extraLines) }
                appendTail(resident.facts, note, to: &writer, now: now)
            }
        }
        let size = resident.facts.size
        guard let outlet, !isHead, size > 0 else {
            outlet?.send(head: head)
            return finishAnswer()
        }
        guard size <= UInt64(settings.directBytesMax) else {
            outlet.send(head: head)
            stream(resident, [.body(from: 0, count: size)])
            return proceed()
        }
        outlet.send(head: head, body: resident)
        answeredBytes = size
        finishAnswer()
    }

    /// Gives the whole of a record from where it lies; should the socket not take what it had room
    /// for, the rest is read and checked again, and waits in memory.
    func give(_ record: RecordToSend, now: Instant) {
        part = .disk
        hall.touch(record.name, hash: record.hash, now: now)
        sendHead([], status: record.head.status, record.head, from: 0) {
            appendTail(record.facts, .hit(.disk), to: &$0, now: now)
        }
        answeredBytes = record.send(through: outlet)
        guard answeredBytes < record.facts.size else { return finishAnswer() }
        guard let resident = hall.entry(of: record) else { return breakOff() }
        stream(resident, [.body(from: answeredBytes, count: record.facts.size - answeredBytes)])
        proceed()
    }

    /// Adds the line of Cache-Status of an answer that the origin was asked for; that of a hit is
    /// written with its head.
    func addStatusLine(_ note: CacheNote, _ facts: EntryFacts, now: Instant) {
        guard var status = note.status(facts, key: waitingKey, now: now) else { return }
        status.isFenced = !hall.fence.isOpen(at: now)
        extraLines += "Cache-Status: ".utf8
        status.append(to: &extraLines)
        extraLines += "\r\n".utf8
    }

    @inline(__always)
    func beginAnswer(status: UInt16) {
        answeredStatus = status
        answeredBytes = 0
        // What operators and the node itself ask for would blur what they look at.
        guard side == .data else { return }
        hall.answerBegan(status, part)
        if let siteCounters { siteCounters.add(.requests(part.outcome)) }
    }

    /// The answer is written.
    @inline(__always)
    func finishAnswer() {
        if !extraLines.isEmpty { extraLines.removeAll(keepingCapacity: true) }
        if side == .data {
            hall.answerEnded(part, begunAt: startedAt, bodyBytes: answeredBytes)
            if let siteCounters {
                siteCounters.add(.bodyBytes(part.outcome), Int(clamping: answeredBytes))
            }
        }
        if logged != nil { log(isComplete: true) }
        isAnswering = false
        outlet?.answerEnded()
    }
}

extension RequestFacts {
    /// Of the request that the parser has read.
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
