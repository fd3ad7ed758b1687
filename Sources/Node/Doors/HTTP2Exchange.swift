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
final class HTTP2Exchange: Outlet {
    private let door: Door
    /// Nil between two streams.
    private var stream: HTTP2Stream?
    /// Holds it from the beginning of a stream to its end.
    private var connection: HTTP2Connection?
    private var session: HTTP2ServerSession?
    /// The head of an answer, until it is known whether a body follows.
    private var head: ByteBuffer?
    private var trailers: [UInt8]?
    /// What the bytes in the stream's queue are taken from.
    private var lent: [Resident] = []
    /// Pieces of the request's body that the origin does not take yet.
    private var pieces: CircularBuffer<ByteBuffer> = []
    /// The request's body is whole, with these fields behind it.
    private var bodyEnd: Trailers?
    /// The request whose body is being dropped; it is answered after it.
    private var pending: PendingRequest?
    private var droppedBytes: UInt64 = 0
    /// While there is such a request: its body must have ended by this instant.
    private var deadline = Instant.distantFuture

    /// Its request waits for a turn of the loop.
    var isInLine: Bool { door.waiting?.inLine != nil }
    var shareHolder: ShareHolder? { door.shareHolder }
    var queuedBytes: Int { stream?.bytesQueued ?? 0 }

    init(on hall: Hall) {
        door = Door(on: hall, side: .data, carriage: .http2)
    }

    // MARK: What comes

    /// Begins with a request whose head is `head` as HTTP/1.1 writes it, of so many field lines.
    func begin(
        _ stream: HTTP2Stream, of connection: HTTP2Connection, head: Span<UInt8>, linesCount: Int,
        now: Instant
    ) {
        open(stream, connection)
        if door.parser.limits != door.settings.headLimits { door.adoptLimits() }
        switch door.parser.parse(head, from: 0) {
        case .head(let end) where end == head.count && door.parser.fields.count == linesCount:
            door.read(head, 0..<end)
            let framing = door.parser.framing
            if framing == .none || framing == .length(0) || door.isOfSite(head) {
                door.answer(head, now: now)
            } else {
                beginDropping(head, now: now)
            }
        case .refused(let refusal):
            door.isHeadRequest = door.parser.method == .head
            refuse(refusal)
        case .head, .incomplete:
            door.parser.reset()
            door.hall.counters.add(.requestsMalformed)
            session?.reset(stream, .protocolError)
        }
    }

    /// Begins with a request whose head was not kept.
    func begin(
        _ stream: HTTP2Stream, of connection: HTTP2Connection, refusing refusal: RequestRefusal
    ) {
        open(stream, connection)
        door.isHeadRequest = false
        refuse(refusal)
    }

    private func refuse(_ refusal: RequestRefusal) {
        door.hall.counters.add(.requestsMalformed)
        door.refuse(.malformed(refusal))
    }

    private func open(_ stream: HTTP2Stream, _ connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
        session = connection.session
        stream.owner = self
        door.outlet = self
        door.client = connection.client
    }

    /// Nothing here takes a body; it is read and dropped all the same, because some clients do not
    /// read the answer on a stream that is reset while they write.
    private func beginDropping(_ head: Span<UInt8>, now: Instant) {
        let settings = door.settings
        pending = PendingRequest(copying: door.parser, head, door.headRange)
        if case .length(let length) = door.parser.framing, length > settings.requestBodyBytesMax {
            return refuse(.bodyTooLarge(bytesMax: settings.requestBodyBytesMax))
        }
        droppedBytes = 0
        deadline = now + settings.bodyTimeout
        guard door.parser.expectsContinue else { return }
        send(interim: Door.goOnAndSend)
    }

    private func drop(_ bytes: Int) {
        guard pending != nil, let stream else { return }
        session?.consumed(stream, bytes: bytes)
        droppedBytes += UInt64(bytes)
        let bytesMax = door.settings.requestBodyBytesMax
        guard droppedBytes > bytesMax else { return }
        refuse(.bodyTooLarge(bytesMax: bytesMax))
    }

    /// The request whose body was being dropped is answered before its body has ended.
    private func refuse(_ problem: Problem) {
        let request = pending.take()
        door.refuse(problem, of: request)
    }

    /// A piece of the request's body; one that nobody wants is let go.
    func bodyArrived(_ bytes: Span<UInt8>, now: Instant) {
        guard door.upload != nil else {
            pending?.keep(bytes, on: door.side)
            return drop(bytes.count)
        }
        let piece = ByteBuffer(bytes: bytes.copy(0..<bytes.count))
        guard door.takesUpload, pieces.isEmpty else { return pieces.append(piece) }
        pass(piece, now: now)
    }

    func bodyEnded(_ section: Span<UInt8>, now: Instant) {
        if let request = pending.take() { return door.answer(request, now: now) }
        guard door.upload != nil else { return }
        guard let trailers = Trailers(section.copy(0..<section.count)) else {
            return door.uploadRefused(.malformedBody(.forbiddenTrailer))
        }
        bodyEnd = trailers
        passEnd(now: now)
    }

    private func pass(_ piece: ByteBuffer, now: Instant) {
        door.uploadArrived(piece, now: now)
        guard let stream else { return }
        session?.consumed(stream, bytes: piece.readableBytes)
    }

    private func passEnd(now: Instant) {
        guard let trailers = bodyEnd, pieces.isEmpty, door.takesUpload else { return }
        bodyEnd = nil
        door.uploadEnded(trailers, now: now)
    }

    /// All that was written is on its way.
    func drained() {
        passOnLent()
        if door.isAnswering { door.proceed() }
    }

    private func passOnLent() {
        for resident in lent { connection?.lend(resident) }
        lent.removeAll(keepingCapacity: true)
    }

    /// Leaves the stream to itself if its request and the whole of the answer are with the session,
    /// and is free for another; false if it has to stay.
    func leave() -> Bool {
        guard let stream, stream.isEnding, stream.isRemoteEnded, !stream.isReset,
            !door.isAnswering, lent.count <= 1
        else { return false }
        stream.owner = nil
        stream.source = lent.first
        lent.removeAll(keepingCapacity: true)
        closed()
        return true
    }

    /// The stream is over; the exchange is free for another.
    func closed() {
        passOnLent()
        door.gone()
        stream = nil
        connection = nil
        session = nil
        head = nil
        trailers = nil
        pieces.removeAll()
        bodyEnd = nil
        pending = nil
    }

    func ticked(_ now: Instant) {
        guard pending != nil else { return door.ticked(now) }
        guard now >= deadline else { return }
        door.hall.counters.add(.timeoutsBody)
        refuse(.slow("body", seconds: door.settings.bodyTimeout.seconds))
    }

    /// The node gives the answer up: the client has not left it.
    func isTakenBack() { door.isBrokenOff = true }

    // MARK: What goes

    func send(head: ByteBuffer) {
        self.head = head
    }

    func send(head: ByteBuffer, body resident: Resident) {
        guard let stream, let session else { return }
        lent.append(resident)
        session.respond(stream, head: head.readableBytesUInt8Span, endsStream: false)
        for index in resident.chunks.indices { session.write(stream, resident.chunks[index]) }
    }

    func send(interim: ByteBuffer) {
        guard let stream else { return }
        session?.interim(stream, head: interim.readableBytesUInt8Span)
    }

    @inline(__always)
    func send(body: ByteBuffer) {
        guard let stream, let session else { return }
        if let head {
            self.head = nil
            session.respond(stream, head: head.readableBytesUInt8Span, endsStream: false)
        }
        session.write(stream, body)
    }

    func beginChunk(bytes: UInt64) {}
    func endChunk() {}

    func endChunks(trailers: [UInt8]) {
        if !trailers.isEmpty { self.trailers = trailers }
    }

    func answerEnded() {
        guard let stream, let session else { return }
        if let head {
            self.head = nil
            session.respond(stream, head: head.readableBytesUInt8Span, endsStream: trailers == nil)
        }
        session.end(stream, trailers: trailers)
    }

    func flush() {
        if let head, let stream {
            self.head = nil
            session?.respond(
                stream, head: head.readableBytesUInt8Span, endsStream: false)
        }
        connection?.flush()
    }

    func lend(_ resident: Resident) {
        lent.append(resident)
    }

    func bodyWanted() {}

    func bodyGoesOn() {
        let now = SystemClock.now()
        while door.takesUpload, let piece = pieces.popFirst() { pass(piece, now: now) }
        passEnd(now: now)
        connection?.flush()
    }

    func goOn() {}

    func breakOff() {
        guard let stream else { return }
        session?.reset(stream, .internalError)
        connection?.flush()
    }
}
