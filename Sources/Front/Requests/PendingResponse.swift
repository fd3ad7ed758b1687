import Admin
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Wire

/// A response that memory could not serve within the read that brought the request.
final class PendingResponse: MissSchedulerWaiter {
    /// The request; empty while an entry is streamed, when it is no longer required.
    let request: BufferedRequest
    /// The lookup; `nil` while an entry is streamed.
    let query: SiteRequest?
    /// Traits of the request, such as conditions and ranges.
    let facts: RequestTraits
    /// Reason for forwarding, for Cache-Status.
    var reason: CacheHandling.Reason
    /// Name of the URL's primary entry on disk; `nil` without a disk tier.
    var name: EntryName?
    /// True if the disk may have the response and was not read yet.
    var asksDisk = false
    /// True if a transfer from a peer broke off, so that peers are skipped.
    var skipsPeers = false
    /// True if another request started the fetch.
    var isCollapsed = false
    /// True if this request started the fetch.
    var isInitiator = false
    /// The fetch; `nil` before it is joined and while the body comes from an entry.
    var fetch: ActiveFetch?
    /// The request's reader of ``fetch``.
    var reader: Fetch.ReaderID?
    /// Progress of the response.
    var stage = Stage.awaitingHead
    /// Handler and exclusivity of the fetch, while the request waits for a turn of
    /// ``MissScheduler``.
    var queueEntry: (handler: RequestHandler, alone: Bool)?

    /// Progress of a pending response.
    enum Stage {
        /// Nothing was sent.
        case awaitingHead
        /// The body is sent while it is received.
        case streaming(Transfer)
        /// The rest of the response is sent from an entry.
        case sendingEntry(MemoryEntry, [ResponseBodyPart])
    }

    /// Progress of a body that is sent while it is received.
    struct Transfer {
        /// Offset of the next byte to process in the body.
        var position: UInt64 = 0
        /// Start of the requested bytes, as an offset in the body.
        var from: UInt64 = 0
        /// End of the requested bytes; `nil` for the end of a body of unknown length.
        var end: UInt64?
        /// True if the body is sent in chunks.
        let isChunked: Bool
        /// Bytes written but not yet accepted by the socket; the fetch still retains them.
        var inFlightBytes = 0

        /// Creates a transfer of the bytes from `from` to `end`; `nil` stands for the end of the
        /// body.
        init(from: UInt64, end: UInt64?, isChunked: Bool) {
            self.from = from
            self.end = end
            self.isChunked = isChunked
        }
    }

    /// Creates a pending response at its head.
    init(
        _ request: BufferedRequest, _ query: SiteRequest, facts: RequestTraits,
        reason: CacheHandling.Reason
    ) {
        self.request = request
        self.query = query
        self.facts = facts
        self.reason = reason
    }

    /// Creates a pending response for the rest of an entry.
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

    /// True if nothing of the response was sent.
    var isAtHead: Bool {
        if case .awaitingHead = stage { true } else { false }
    }

    /// True if the request is for an image by its URL.
    var isForImage: Bool { query?.isImage == true }

    /// Marks the request as waiting for a fetch that another request started.
    func markCollapsed() {
        isCollapsed = true
        isInitiator = false
    }

    /// Returns the handling as a forwarded response.
    func forwardedHandling(status: UInt16, isStored: Bool, isFromPeer: Bool) -> CacheHandling {
        .forwarded(
            reason, status: status, isStored: isStored, isCollapsed: isCollapsed,
            isFromPeer: isFromPeer)
    }
}

/// A part of a response body: generated text, or a range of the entry's body in bytes.
enum ResponseBodyPart {
    case text(ByteBuffer)
    case body(from: UInt64, count: UInt64)
}

/// A copy of a request head, with the offsets of its lines, that outlives the read buffer.
struct BufferedRequest {
    /// The buffered part of the request body.
    var body: [UInt8] = []
    /// Bytes of the head.
    let head: [UInt8]
    /// Field lines, as offsets in ``head``.
    let lines: [FieldLine]
    /// True for an HTTP/1.0 request.
    let isHTTP10: Bool

    /// Creates an empty request.
    init() {
        head = []
        lines = []
        isHTTP10 = false
    }

    /// Appends a piece of the body, up to the limit of admin requests; those of clients are
    /// dropped.
    mutating func appendBody(_ piece: Span<UInt8>, plane side: RequestHandler.Plane) {
        guard side == .admin, body.count <= AdminOperation.bodyBytesMax else { return }
        body += piece.copy(0..<piece.count)
    }

    /// Creates a copy of the head in `range` of `bytes`, as `parser` has parsed it.
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
    /// Returns this extent relative to a copy that begins at `offset`.
    fileprivate func moved(down offset: Int) -> Extent {
        Extent(start: Int(start) - offset, count: Int(count))
    }
}
