import Admin
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Wire

/// An answer that memory could not give within the read that brought the request.
final class PendingResponse: MissSchedulerWaiter {
    /// Empty while an entry is streamed, when all that the request says has been looked at.
    let request: BufferedRequest
    /// What was asked; nil while an entry is streamed.
    let query: SiteRequest?
    let facts: RequestTraits
    /// What Cache-Status gives as the reason for going on.
    var reason: CacheHandling.Reason
    /// What the answer is called on disk, variants apart; nil without a disk tier.
    var name: EntryName?
    /// The disk may have it, and was not asked.
    var asksDisk = false
    /// A peer has not given the answer to its end.
    var skipsPeers = false
    /// Another request caused the fetch.
    var isCollapsed = false
    /// This one did.
    var isInitiator = false
    /// The fetch that it waits for, and its name there; nil while the body comes from an entry.
    var fetch: ActiveFetch?
    var reader: Fetch.ReaderID?
    var stage = Stage.awaitingHead
    /// While it waits for a turn of the loop: who asks, and whether its fetch is its own.
    var queueEntry: (handler: RequestHandler, alone: Bool)?

    enum Stage {
        /// Nothing was sent.
        case awaitingHead
        /// The body goes to the client as it is received.
        case streaming(Transfer)
        /// The rest of the answer, taken from an entry.
        case sendingEntry(MemoryEntry, [ResponseBodyPart])
    }

    /// How far a body that is being received has gone to this client.
    struct Transfer {
        /// Offset in the body of the next byte to look at.
        var position: UInt64 = 0
        /// The bytes wanted; the upper bound is nil if it is the unknown end.
        var from: UInt64 = 0
        var end: UInt64?
        let isChunked: Bool
        /// Written, and not yet on their way: the fetch still holds them.
        var inFlightBytes = 0

        init(from: UInt64, end: UInt64?, isChunked: Bool) {
            self.from = from
            self.end = end
            self.isChunked = isChunked
        }
    }

    init(
        _ request: BufferedRequest, _ query: SiteRequest, facts: RequestTraits,
        reason: CacheHandling.Reason
    ) {
        self.request = request
        self.query = query
        self.facts = facts
        self.reason = reason
    }

    /// The rest of an answer from an entry.
    init() {
        request = BufferedRequest()
        query = nil
        facts = []
        reason = .uriMiss
    }

    func turnGranted(now: Instant) {
        guard let (handler, alone) = queueEntry.take(), handler.pendingResponse === self else {
            return
        }
        handler.beginFetch(self, alone: alone)
        if handler.acceptsUpload { handler.writer?.resumeRequestBody() }
        handler.writer?.flush()
    }

    /// Nothing of the answer was sent.
    var isAtHead: Bool {
        if case .awaitingHead = stage { true } else { false }
    }

    /// It asks for an image by its URL.
    var isForImage: Bool { query?.isImage == true }

    /// It waits for what another request has caused.
    func markCollapsed() {
        isCollapsed = true
        isInitiator = false
    }

    func forwardedHandling(status: UInt16, isStored: Bool, isFromPeer: Bool) -> CacheHandling {
        .forwarded(
            reason, status: status, isStored: isStored, isCollapsed: isCollapsed,
            isFromPeer: isFromPeer)
    }
}

/// A piece of an answer's content: text of ours, or a part of the entry's body.
enum ResponseBodyPart {
    case text(ByteBuffer)
    case body(from: UInt64, count: UInt64)
}

/// A request that outlives the buffer it was read from: a copy of its head, and where its lines
/// are.
struct BufferedRequest {
    /// What was kept of its body.
    var body: [UInt8] = []
    let head: [UInt8]
    let lines: [FieldLine]
    let isHTTP10: Bool

    /// No request.
    init() {
        head = []
        lines = []
        isHTTP10 = false
    }

    /// Keeps a piece of the body, as far as anybody looks at it.
    mutating func appendBody(_ piece: Span<UInt8>, plane side: RequestHandler.Plane) {
        guard side == .admin, body.count <= AdminOperation.bodyBytesMax else { return }
        body += piece.copy(0..<piece.count)
    }

    /// A copy of the head that lies in `range` of `bytes`, where the parser has read it.
    init(copying parser: borrowing RequestParser, _ bytes: Span<UInt8>, _ range: Range<Int>) {
        head = bytes.copy(range)
        var lines = parser.fields.copy()
        if range.lowerBound > 0 {
            for (index, line) in lines.enumerated() {
                lines[index] = FieldLine(
                    id: line.id, name: line.name.moved(down: range.lowerBound),
                    value: line.value.moved(down: range.lowerBound))
            }
        }
        self.lines = lines
        isHTTP10 = parser.isHTTP10
    }
}

extension Extent {
    /// The same bytes in a copy that begins `offset` further on.
    fileprivate func moved(down offset: Int) -> Extent {
        Extent(start: Int(start) - offset, count: Int(count))
    }
}
