import Ground
import HTTPRules
import NIOCore
import Origin
import Platform
import Store
import Telemetry
import Wire

/// One request on an HTTP/2 connection and its response: the handler's ``ResponseWriter`` on a
/// stream.
///
/// Reused for later streams of any connection of its loop.
final class HTTP2Exchange: ResponseWriter {
    private let handler: RequestHandler
    /// The stream; `nil` between two uses.
    private var stream: HTTP2Stream?
    /// The connection, kept alive from the start of the stream to its end.
    private var connection: HTTP2Connection?
    /// The HTTP/2 state of the connection; `nil` between two streams.
    private var session: HTTP2ServerSession?
    /// The head of the response, held until it is known whether a body follows.
    private var head: ByteBuffer?
    /// The trailer section to send at the end, if there is one.
    private var trailers: [UInt8]?
    /// Memory entries that own the bytes in the stream's queue.
    private var retainedEntries: [MemoryEntry] = []
    /// Pieces of the request body that the origin does not accept yet.
    private var bufferedBody: CircularBuffer<ByteBuffer> = []
    /// The trailers of a request body that was received completely; `nil` before its end.
    private var pendingTrailers: Trailers?
    /// The request whose body is being read before its response.
    private var bufferedRequest: BufferedRequest?
    /// Instant by which the body of ``bufferedRequest`` must have ended.
    private var deadline = Instant.distantFuture

    /// True if the request waits for a turn of ``MissScheduler``.
    var isQueued: Bool { handler.pendingResponse?.isQueued == true }
    /// Holder of the quotas that the request uses.
    var quotaHolder: QuotaHolder? { handler.quotaHolder }
    /// Bytes of the response in the stream's queue.
    var queuedBytes: Int { stream?.bytesQueued ?? 0 }

    /// Creates an exchange without a stream.
    init(on context: EventLoopContext) {
        handler = RequestHandler(on: context, plane: .data, protocolVersion: .http2)
    }

    // MARK: Input

    /// Begins with a request whose head is written as in HTTP/1.1.
    ///
    /// - Parameters:
    ///   - stream: the stream of the request.
    ///   - connection: the connection of the stream.
    ///   - head: the request head, with its empty line.
    ///   - linesCount: number of field lines; a parser that finds another number reveals an
    ///     injected line.
    ///   - now: the current time.
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
            handler.response.isHeadRequest = handler.parser.method == .head
            refuse(refusal)
        case .head, .incomplete:
            handler.parser.reset()
            handler.context.counters.add(.requestsMalformed)
            session?.reset(stream, .protocolError)
        }
    }

    /// Begins with a request that was refused before its head was complete.
    func begin(
        _ stream: HTTP2Stream, of connection: HTTP2Connection, refusing refusal: RequestParseError
    ) {
        open(stream, connection)
        handler.response.isHeadRequest = false
        refuse(refusal)
    }

    /// Responds to a malformed request head.
    private func refuse(_ refusal: RequestParseError) {
        handler.context.counters.add(.requestsMalformed)
        handler.reject(.malformed(refusal))
    }

    /// Attaches the exchange to a stream.
    private func open(_ stream: HTTP2Stream, _ connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
        session = connection.session
        stream.owner = self
        handler.response.writer = self
        handler.response.client = connection.client
    }

    /// Begins to read the body of a request that is not forwarded, because some clients do not read
    /// the response on a stream that is reset while they send.
    private func beginDiscarding(_ head: Span<UInt8>, now: Instant) {
        let settings = handler.settings
        let request = BufferedRequest(copying: handler.parser, head, handler.headRange)
        bufferedRequest = request
        if let problem = request.bodyProblem(bytesMax: settings.requestBodyBytesMax) {
            return refuse(problem)
        }
        deadline = now + settings.bodyTimeout
        guard handler.parser.expectsContinue else { return }
        send(interim: RequestHandler.continueResponse)
    }

    /// Counts a piece of a body that is not forwarded, and opens the flow-control window for it;
    /// refuses the request if its body is too large.
    private func discard(_ bytes: Int) {
        guard let bufferedRequest, let stream else { return }
        session?.consume(stream, bytes: bytes)
        let bytesMax = handler.settings.requestBodyBytesMax
        if let problem = bufferedRequest.bodyProblem(bytesMax: bytesMax) { refuse(problem) }
    }

    /// Responds with `problem` to the request whose body is being read, before its end.
    private func refuse(_ problem: Problem) {
        let request = bufferedRequest.take()
        handler.reject(problem, of: request)
    }

    /// Handles a piece of the request body; it is forwarded, or counted and dropped.
    func bodyArrived(_ bytes: Span<UInt8>, now: Instant) {
        guard handler.upload != nil else {
            bufferedRequest?.appendBody(bytes, plane: handler.plane)
            return discard(bytes.count)
        }
        let piece = ByteBuffer(bytes: bytes.copy(0..<bytes.count))
        guard handler.acceptsUpload, bufferedBody.isEmpty else { return bufferedBody.append(piece) }
        forward(piece, now: now)
    }

    /// Handles the end of the request body.
    ///
    /// - Parameters:
    ///   - section: the trailer section as field lines; empty if there is none.
    ///   - now: the current time.
    func bodyEnded(_ section: Span<UInt8>, now: Instant) {
        if let request = bufferedRequest.take() { return handler.respond(request, now: now) }
        guard handler.upload != nil else { return }
        guard let trailers = Trailers(section.copy(0..<section.count)) else {
            handler.pendingResponse?.uploadRejected(.malformedBody(.forbiddenTrailer))
            return
        }
        pendingTrailers = trailers
        forwardEnd(now: now)
    }

    /// Passes a piece of the body to the handler, and opens the flow-control window for it.
    private func forward(_ piece: ByteBuffer, now: Instant) {
        handler.upload?.received(piece, now: now)
        guard let stream else { return }
        session?.consume(stream, bytes: piece.readableBytes)
    }

    /// Passes the end of the body to the handler once it has arrived, all pieces were forwarded and
    /// the origin accepts more.
    private func forwardEnd(now: Instant) {
        guard let trailers = pendingTrailers, bufferedBody.isEmpty, handler.acceptsUpload else {
            return
        }
        pendingTrailers = nil
        handler.pendingResponse?.uploadEnded(trailers, now: now)
    }

    /// Continues the response once the stream's queue is empty, and passes retained entries to the
    /// connection.
    func drained() {
        moveRetainedEntries()
        if handler.response.isResponding { handler.proceed() }
    }

    /// Moves the retained entries to the connection, whose queue has their bytes now.
    private func moveRetainedEntries() {
        for entry in retainedEntries { connection?.retain(entry) }
        retainedEntries.removeAll(keepingCapacity: true)
    }

    /// Detaches the exchange from a stream whose request and response are both complete in the
    /// session, so that it can be reused.
    ///
    /// - Returns: false if the exchange must stay until the stream ends.
    func detach() -> Bool {
        guard let stream, stream.isEnding, stream.isRemoteEnded, !stream.isReset,
            !handler.response.isResponding, retainedEntries.count <= 1
        else { return false }
        stream.owner = nil
        stream.source = retainedEntries.first
        retainedEntries.removeAll(keepingCapacity: true)
        streamClosed()
        return true
    }

    /// Resets the exchange after the end of its stream, ready for reuse.
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

    /// Checks the deadline of the request; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant) {
        guard bufferedRequest != nil else { return handler.ticked(now) }
        guard now >= deadline else { return }
        handler.context.counters.add(.timeoutsBody)
        refuse(.requestTimeout("body", seconds: handler.settings.bodyTimeout.seconds))
    }

    /// Marks the response as aborted by the node, not by the client.
    func responseAborted() { handler.response.isAborted = true }

    // MARK: Output

    /// Holds the head until body bytes, the end of the response or a flush follow.
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

    /// Keeps the trailers for the end of the response.
    func endChunks(trailers: [UInt8]) {
        if !trailers.isEmpty { self.trailers = trailers }
    }

    /// Ends the stream's output, with the head if no body was sent, and the trailers.
    func responseEnded() {
        guard let stream, let session else { return }
        if let head {
            self.head = nil
            session.sendResponse(
                stream, head: head.readableBytesUInt8Span, endsStream: trailers == nil)
        }
        session.end(stream, trailers: trailers)
    }

    /// Passes a held head to the session, and lets the connection write frames.
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

    /// Does nothing: pieces of the body arrive in any case.
    func beginRequestBody() {}

    /// Forwards the pieces of the request body that have waited, as far as the origin accepts them.
    func resumeRequestBody() {
        let now = SystemClock.now()
        while handler.acceptsUpload, let piece = bufferedBody.popFirst() {
            forward(piece, now: now)
        }
        forwardEnd(now: now)
        connection?.flush()
    }

    /// Does nothing: a stream has one request.
    func resumeRequests() {}

    /// Resets the stream; the connection stays open.
    func abort() {
        guard let stream else { return }
        session?.reset(stream, .internalError)
        connection?.flush()
    }
}
