import Ground
import HTTPRules
import NIOCore
import Origin
import Store
import Telemetry
import Wire

/// One request on a connection of HTTP/2 and its answer: a door whose client's side is a stream.
///
/// Used again for later streams, of any connection of its loop.
final class HTTP2Exchange: ResponseWriter {
    private let handler: RequestHandler
    /// Nil between two streams.
    private var stream: HTTP2Stream?
    /// Holds it from the beginning of a stream to its end.
    private var connection: HTTP2Connection?
    private var session: HTTP2ServerSession?
    /// The head of an answer, until it is known whether a body follows.
    private var head: ByteBuffer?
    private var trailers: [UInt8]?
    /// What the bytes in the stream's queue are taken from.
    private var retainedEntries: [MemoryEntry] = []
    /// Pieces of the request's body that the origin does not take yet.
    private var bufferedBody: CircularBuffer<ByteBuffer> = []
    /// The request's body is whole, with these fields behind it.
    private var pendingTrailers: Trailers?
    /// The request whose body is being dropped; it is answered after it.
    private var bufferedRequest: BufferedRequest?
    private var discardedBytes: UInt64 = 0
    /// While there is such a request: its body must have ended by this instant.
    private var deadline = Instant.distantFuture

    /// Its request waits for a turn of the loop.
    var isQueued: Bool { handler.pendingResponse?.queueEntry != nil }
    var shareHolder: QuotaHolder? { handler.shareHolder }
    var queuedBytes: Int { stream?.bytesQueued ?? 0 }

    init(on context: EventLoopContext) {
        handler = RequestHandler(on: context, plane: .data, protocolVersion: .http2)
    }

    // MARK: What comes

    /// Begins with a request whose head is `head` as HTTP/1.1 writes it, of so many field lines.
    func begin(
        _ stream: HTTP2Stream, of connection: HTTP2Connection, head: Span<UInt8>, linesCount: Int,
        now: Instant
    ) {
        open(stream, connection)
        if handler.parser.limits != handler.settings.headLimits { handler.reconfigureLimits() }
        switch handler.parser.parse(head, from: 0) {
        case .head(let end) where end == head.count && handler.parser.fields.count == linesCount:
            handler.read(head, 0..<end)
            let framing = handler.parser.framing
            if framing == .none || framing == .length(0) || handler.isSiteRequest(head) {
                handler.respond(head, now: now)
            } else {
                beginDiscarding(head, now: now)
            }
        case .refused(let refusal):
            handler.isHeadRequest = handler.parser.method == .head
            refuse(refusal)
        case .head, .incomplete:
            handler.parser.reset()
            handler.context.counters.add(.requestsMalformed)
            session?.reset(stream, .protocolError)
        }
    }

    /// Begins with a request whose head was not kept.
    func begin(
        _ stream: HTTP2Stream, of connection: HTTP2Connection, refusing refusal: RequestParseError
    ) {
        open(stream, connection)
        handler.isHeadRequest = false
        refuse(refusal)
    }

    private func refuse(_ refusal: RequestParseError) {
        handler.context.counters.add(.requestsMalformed)
        handler.reject(.malformed(refusal))
    }

    private func open(_ stream: HTTP2Stream, _ connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
        session = connection.session
        stream.owner = self
        handler.writer = self
        handler.client = connection.client
    }

    /// Nothing here takes a body; it is read and dropped all the same, because some clients do not
    /// read the answer on a stream that is reset while they write.
    private func beginDiscarding(_ head: Span<UInt8>, now: Instant) {
        let settings = handler.settings
        bufferedRequest = BufferedRequest(copying: handler.parser, head, handler.headRange)
        if case .length(let length) = handler.parser.framing, length > settings.requestBodyBytesMax
        {
            return refuse(.bodyTooLarge(bytesMax: settings.requestBodyBytesMax))
        }
        discardedBytes = 0
        deadline = now + settings.bodyTimeout
        guard handler.parser.expectsContinue else { return }
        send(interim: RequestHandler.continueResponse)
    }

    private func discard(_ bytes: Int) {
        guard bufferedRequest != nil, let stream else { return }
        session?.consume(stream, bytes: bytes)
        discardedBytes += UInt64(bytes)
        let bytesMax = handler.settings.requestBodyBytesMax
        guard discardedBytes > bytesMax else { return }
        refuse(.bodyTooLarge(bytesMax: bytesMax))
    }

    /// The request whose body was being dropped is answered before its body has ended.
    private func refuse(_ problem: Problem) {
        let request = bufferedRequest.take()
        handler.reject(problem, of: request)
    }

    /// A piece of the request's body; one that nobody wants is let go.
    func bodyArrived(_ bytes: Span<UInt8>, now: Instant) {
        guard handler.upload != nil else {
            bufferedRequest?.appendBody(bytes, plane: handler.plane)
            return discard(bytes.count)
        }
        let piece = ByteBuffer(bytes: bytes.copy(0..<bytes.count))
        guard handler.acceptsUpload, bufferedBody.isEmpty else { return bufferedBody.append(piece) }
        forward(piece, now: now)
    }

    func bodyEnded(_ section: Span<UInt8>, now: Instant) {
        if let request = bufferedRequest.take() { return handler.respond(request, now: now) }
        guard handler.upload != nil else { return }
        guard let trailers = Trailers(section.copy(0..<section.count)) else {
            return handler.uploadRejected(.malformedBody(.forbiddenTrailer))
        }
        pendingTrailers = trailers
        forwardEnd(now: now)
    }

    private func forward(_ piece: ByteBuffer, now: Instant) {
        handler.uploadReceived(piece, now: now)
        guard let stream else { return }
        session?.consume(stream, bytes: piece.readableBytes)
    }

    private func forwardEnd(now: Instant) {
        guard let trailers = pendingTrailers, bufferedBody.isEmpty, handler.acceptsUpload else {
            return
        }
        pendingTrailers = nil
        handler.uploadEnded(trailers, now: now)
    }

    /// All that was written is on its way.
    func drained() {
        moveRetainedEntries()
        if handler.isResponding { handler.proceed() }
    }

    private func moveRetainedEntries() {
        for entry in retainedEntries { connection?.retain(entry) }
        retainedEntries.removeAll(keepingCapacity: true)
    }

    /// Leaves the stream to itself if its request and the whole of the answer are with the session,
    /// and is free for another; false if it has to stay.
    func detach() -> Bool {
        guard let stream, stream.isEnding, stream.isRemoteEnded, !stream.isReset,
            !handler.isResponding, retainedEntries.count <= 1
        else { return false }
        stream.owner = nil
        stream.source = retainedEntries.first
        retainedEntries.removeAll(keepingCapacity: true)
        streamClosed()
        return true
    }

    /// The stream is over; the exchange is free for another.
    func streamClosed() {
        moveRetainedEntries()
        handler.connectionClosed()
        stream = nil
        connection = nil
        session = nil
        head = nil
        trailers = nil
        bufferedBody.removeAll()
        pendingTrailers = nil
        bufferedRequest = nil
    }

    func ticked(_ now: Instant) {
        guard bufferedRequest != nil else { return handler.ticked(now) }
        guard now >= deadline else { return }
        handler.context.counters.add(.timeoutsBody)
        refuse(.requestTimeout("body", seconds: handler.settings.bodyTimeout.seconds))
    }

    /// The node gives the answer up: the client has not left it.
    func responseAborted() { handler.isAborted = true }

    // MARK: What goes

    func send(head: ByteBuffer) {
        self.head = head
    }

    func send(head: ByteBuffer, body entry: MemoryEntry) {
        guard let stream, let session else { return }
        retainedEntries.append(entry)
        session.sendResponse(stream, head: head.readableBytesUInt8Span, endsStream: false)
        for index in entry.chunks.indices { session.write(stream, entry.chunks[index]) }
    }

    func send(interim: ByteBuffer) {
        guard let stream else { return }
        session?.sendInterimResponse(stream, head: interim.readableBytesUInt8Span)
    }

    @inline(__always)
    func send(body: ByteBuffer) {
        guard let stream, let session else { return }
        if let head {
            self.head = nil
            session.sendResponse(stream, head: head.readableBytesUInt8Span, endsStream: false)
        }
        session.write(stream, body)
    }

    func beginChunk(bytes: UInt64) {}
    func endChunk() {}

    func endChunks(trailers: [UInt8]) {
        if !trailers.isEmpty { self.trailers = trailers }
    }

    func responseEnded() {
        guard let stream, let session else { return }
        if let head {
            self.head = nil
            session.sendResponse(
                stream, head: head.readableBytesUInt8Span, endsStream: trailers == nil)
        }
        session.end(stream, trailers: trailers)
    }

    func flush() {
        if let head, let stream {
            self.head = nil
            session?.sendResponse(
                stream, head: head.readableBytesUInt8Span, endsStream: false)
        }
        connection?.flush()
    }

    func retain(_ entry: MemoryEntry) {
        retainedEntries.append(entry)
    }

    func beginRequestBody() {}

    func resumeRequestBody() {
        let now = SystemClock.now()
        while handler.acceptsUpload, let piece = bufferedBody.popFirst() {
            forward(piece, now: now)
        }
        forwardEnd(now: now)
        connection?.flush()
    }

    func resumeRequests() {}

    func abort() {
        guard let stream else { return }
        session?.reset(stream, .internalError)
        connection?.flush()
    }
}
