import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

extension Door {
    /// Answers the request that the parser holds, whose head lies in `bytes`.
    func answer(_ bytes: Span<UInt8>, now: Instant) {
        closesAfterAnswer = isDraining || !parser.isPersistent
        isHeadRequest = parser.method == .head
        if hall.hasAccessLog {
            logged = LoggedRequest(parser, bytes, now)
        }
        part = .none
        guard side == .data else { return answerAdmin(bytes) }
        guard parser.method == .get || parser.method == .head else {
            return answerOther(bytes)
        }
        switch ImageTarget.parse(bytes, at: parser.path.range) {
        case .image(let url):
            if CacheKey.isCanonical(bytes, at: url.range, bytesMax: settings.urlBytesMax) {
                answerImage(bytes, key: bytes, url.range, now: now)
            } else {
                answerImage(bytes, normalising: url, now: now)
            }
        case .notImage: answerOther(bytes)
        case .refused(let refusal): answerProblem(.target(refusal, in: bytes))
        }
    }

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
    private func answerImage(
        _ bytes: Span<UInt8>, key: Span<UInt8>, _ range: Range<Int>, now: Instant
    ) {
        let wanted = parser.fields.negotiation(bytes)
        let facts = requestFacts
        let store = hall.store
        let hash = store.hash(key, range)
        guard let resident = store.find(key, range, hash: hash, wanted: wanted) else {
            return answerBeyondMemory(
                bytes, key: key.copy(range), hash: hash, wanted: wanted, facts: facts, now: now)
        }
        switch judge(resident.facts, for: facts, now: now) {
        case .serve:
            part = .hit
            hall.touch(resident, now: now)
            sendWhole(resident, note: .hit(.memory), isHead: isHeadRequest, now: now)
        case .select:
            part = .hit
            hall.touch(resident, now: now)
            let selection = select(
                PendingRequest(copying: parser, bytes, headRange), facts, of: resident.facts,
                RenderedHead(resident))
            send(selection, of: resident, note: .hit(.memory), isHead: isHeadRequest, now: now)
        case .revalidate:
            wait(
                bytes, key: key.copy(range), hash: hash, wanted: wanted, facts: facts,
                stale: resident, .off)
        }
    }

    /// Answers from what the page cache holds of the disk, or waits.
    private func answerBeyondMemory(
        _ bytes: Span<UInt8>, key: [UInt8], hash: UInt64, wanted: Negotiation,
        facts: RequestFacts, now: Instant
    ) {
        let glance = hall.glanceAtDisk(key, hash: hash, wanted: wanted)
        guard case .found(let resident) = glance else {
            return wait(
                bytes, key: key, hash: hash, wanted: wanted, facts: facts, stale: nil, glance)
        }
        part = .disk
        guard judge(resident.facts, for: facts, now: now) == .select else {
            return sendWhole(resident, note: .hit(.disk), isHead: isHeadRequest, now: now)
        }
        let selection = select(
            PendingRequest(copying: parser, bytes, headRange), facts, of: resident.facts,
            RenderedHead(resident))
        send(selection, of: resident, note: .hit(.disk), isHead: isHeadRequest, now: now)
    }

    @inline(__always)
    private var requestFacts: RequestFacts {
        let present = parser.fields.present
        return RequestFacts(
            isHead: isHeadRequest, isConditional: !present.isDisjoint(with: Self.preconditions),
            isRanged: present.contains(.range))
    }

    private static let preconditions = Preconditions.fields

    var connectionNote: ConnectionNote {
        closesAfterAnswer ? .close : parser.isHTTP10 ? .keepAlive : .none
    }

    /// Gives the whole of an entry.
    func sendWhole(_ resident: Resident, note: CacheNote, isHead: Bool, now: Instant) {
        beginAnswer(status: 200)
        let connection = connectionNote
        let size = resident.facts.size
        let copies = !isHead && size <= UInt64(settings.copiedBytesMax)
        let head = hall.heads.with { buffer in
            let room =
                resident.text.count + HeadWriter.linesBytesMax + (copies ? Int(size) : 0)
            buffer.writeHead(room: room) { writer in
                writer.append(resident.text, from: resident.headStart)
                writer.appendTail(
                    resident.facts, note: note, date: hall.dateLine, connection, now: now)
                guard copies else { return }
                for chunk in resident.chunks { writer.append(chunk) }
            }
        }
        write(head)
        guard !isHead, !copies else {
            answeredBytes = isHead ? 0 : size
            return finishAnswer()
        }
        lent.append(resident)
        guard resident.facts.size <= UInt64(settings.directBytesMax) else {
            stream(resident, [.body(from: 0, count: resident.facts.size)])
            return proceed()
        }
        for chunk in resident.chunks { write(chunk) }
        answeredBytes = resident.facts.size
        finishAnswer()
    }

    @inline(__always)
    func beginAnswer(status: UInt16) {
        answeredStatus = status
        answeredBytes = 0
        // What operators ask for would blur what they look at.
        guard side == .data else { return }
        hall.counters.add(.answers(status: status))
        hall.counters.add(part.metric)
    }

    /// The answer is written; the connection goes on or ends.
    @inline(__always)
    func finishAnswer() {
        if logged != nil { log(isComplete: true) }
        if closesAfterAnswer { return beginEnding() }
        phase = .idle
    }
}

/// How the cache takes part in an answer: what is counted and logged of it.
enum CachePart {
    /// Not at all: no image was asked for, or there is a limit against it.
    case none
    case hit
    /// It was on disk.
    case disk
    case miss
    /// It asked the origin whether what is stored is still good.
    case stale
    /// It waited for a fetch that another request had caused.
    case collapsed

    var metric: Metric {
        switch self {
        case .none: .requestsOther
        case .hit: .requestsHit
        case .disk: .requestsHitOnDisk
        case .miss: .requestsMissed
        case .stale: .requestsRevalidated
        case .collapsed: .requestsCollapsed
        }
    }

    /// As the access log has it.
    var text: StaticString {
        switch self {
        case .none: "-"
        case .hit: "hit"
        case .disk: "disk"
        case .miss: "miss"
        case .stale: "stale"
        case .collapsed: "collapsed"
        }
    }
}

/// What Cache-Status says of an answer (RFC 9211), and how it came about.
enum CacheNote: Hashable {
    case hit(Tier)
    /// Forwarded; `isStored` and `isCollapsed` as far as they are known when the head is sent.
    case forwarded(Reason, status: UInt16, isStored: Bool, isCollapsed: Bool)

    enum Tier: Hashable {
        case memory
        case disk
    }

    enum Reason: Hashable {
        case uriMiss
        case varyMiss
        case stale
    }
}

extension HeadWriter {
    /// All lines that differ from one answer of an entry to the next, and the end of the head.
    @inline(__always)
    mutating func appendTail(
        _ facts: EntryFacts, note: CacheNote, date: DateLine, _ connection: ConnectionNote,
        now: Instant
    ) {
        let age = now - facts.bornAt
        switch note {
        case .hit(let tier):
            appendDateAndAge(date, age: age)
            append("Cache-Status: nuthatch; hit; ttl=")
            append(UInt64(max(0, (facts.freshUntil - now).seconds)))
            append(tier == .memory ? "; detail=memory\r\n" : "; detail=disk\r\n")
        case .forwarded(let reason, let status, let isStored, let isCollapsed):
            appendDateAndAge(date, age: age.seconds > 0 ? age : nil)
            append("Cache-Status: nuthatch; fwd=")
            switch reason {
            case .uriMiss: append("uri-miss")
            case .varyMiss: append("vary-miss")
            case .stale: append("stale")
            }
            append("; fwd-status=")
            append(UInt64(status))
            if isStored { append("; stored") }
            if isCollapsed { append("; collapsed") }
            append("; detail=origin\r\n")
        }
        append(connection)
        append("\r\n")
    }
}
