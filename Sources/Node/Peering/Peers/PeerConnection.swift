import Cluster
import Ground
import NIOCore
import Synchronization
import Telemetry
import Wire

/// Of connections with peers; those with origins have ids of their own.
typealias PeerConnectionID = Cluster.ConnectionID

/// One connection with a peer: TLS and frames around the decisions of `Cluster.PeerLink`.
///
/// Confined to its loop, but for what PeerConnection+Asking.swift has.
final class PeerConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        /// TLS is not agreed on, or HELLO has not come.
        case opening
        case open
        /// Nothing is read any more; what was said last is on its way.
        case closing
        case closed
    }

    let id: PeerConnectionID
    /// Nil if the peer dialled.
    let dialled: PeerAddress?
    /// How it is called in the log.
    let remote: String
    let hub: PeerHub
    let permit: PeerConnectionPermit
    let session: TLSSession
    var link: PeerLink
    /// Questions of this node, by stream.
    var requests: [UInt32: PeerRequest] = [:]
    /// Those of them whose answers have begun in this turn of the loop.
    var receivingRequests: [PeerRequest] = []
    /// Questions of the peer, by stream.
    var handlers: [UInt32: PeerRequestHandler] = [:]
    var isReading = false
    var phase = Phase.opening
    var context: ChannelHandlerContext?
    var deadline: Scheduled<Void>?
    /// Plaintext of a frame that is not whole.
    var input = ByteBuffer()
    /// The DATA frame whose payload is arriving, and how much of it is to come.
    var data: (arrival: DataDisposition, left: Int)?
    /// Who the peer is; nil before it says so.
    var peer: NodeID? { peerID.withLock { $0 } }
    let peerID = Mutex<NodeID?>(nil)
    /// What the peer said last.
    var goodbye: Goodbye?
    var isFlushing = false
    /// Frames on their way into the session.
    var pendingPlaintext = PlaintextBuffer()
    /// Room for the pieces of a body.
    var pieces: [ByteBuffer] = []
    let writer = SocketWriter()
    /// It is to be flushed when this turn of the loop is over.
    var isFlushScheduled = false
    /// When something came last.
    var lastReadAt = Instant.zero
    /// A question was given up on which nothing had come, and nothing has come since.
    ///
    /// Until something does, there is no use in asking. Read from any loop.
    let isUnresponsive = Atomic<Bool>(false)
    /// Of the invalidations that this node has applied so many were told on this connection, at
    /// least; nil if none was.
    var sentInvalidationCount: UInt64?
    /// This node's own records up to this number went over it.
    var pushedRecordNumber: UInt64 = 0
    /// There was a connection, be it for a moment.
    var wasActive = false

    /// From the dial, or from being accepted, to the peer's HELLO.
    static let handshakeTimeout = Interval.seconds(5)
    /// How long a peer may take to read why a connection ends.
    static let closeTimeout = Interval.seconds(1)
    /// Bytes that may wait in the socket's buffer before no more is framed.
    static let bufferedBytesMax = 256 << 10

    init(
        _ id: PeerConnectionID, hub: PeerHub, permit place: PeerConnectionPermit,
        dialled: PeerAddress?,
        remote: String
    ) {
        self.id = id
        self.hub = hub
        self.permit = place
        self.dialled = dialled
        self.remote = remote
        session = TLSSession(peer: hub.secrets, dials: dialled != nil)
        let own = hub.view.own
        link = PeerLink(
            dialled == nil ? .accepting : .dialling,
            hello: Hello(member: own.member, incarnation: own.incarnation))
    }

    func onLoop(_ body: @escaping @Sendable (PeerConnection) -> Void) {
        guard let loop else { return }
        if loop.inEventLoop { body(self) } else { loop.execute { body(self) } }
    }

    /// Set before anybody else knows of the connection.
    var loop: (any EventLoop)?

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loop = context.eventLoop
        guard context.channel.isActive else { return }
        begin(context)
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
    }

    func begin(_ context: ChannelHandlerContext) {
        wasActive = true
        let time = TimeAmount.nanoseconds(Self.handshakeTimeout.nanoseconds)
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
            guard phase == .opening else { return }
            fail("it does not say who it is within \(Self.handshakeTimeout.seconds) s")
        }
        writer.open(context)
        session.start()
        sendOutput()
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        writer.close()
        let wasOpening = phase == .opening
        phase = .closed
        self.context = nil
        for event in link.connectionEnded() { handle(event) }
        for answering in handlers.values { answering.cancelled() }
        handlers = [:]
        // Of a dial that was not answered whoever dialled is told.
        guard wasActive else { return }
        if wasOpening {
            hub.connectionFailed(remote, dialled: dialled, why: "the connection was closed")
        } else {
            hub.connectionClosed(id, goodbye)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase == .opening || phase == .open else { return }
        isReading = true
        lastReadAt = SystemClock.now()
        if isUnresponsive.load(ordering: .relaxed) {
            isUnresponsive.store(false, ordering: .relaxed)
        }
        session.receive(unwrapInboundIn(data))
        while true {
            switch session.next() {
            case .needsMore: return sendOutput()
            case .established: continue
            case .data(let plaintext): receive(plaintext)
            case .closed:
                sendOutput()
                return close()
            case .failed(let failure):
                sendOutput()
                return fail(failure.message)
            }
            guard phase == .opening || phase == .open else { return }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        deliverReceivedEntries()
        isReading = false
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { flush() }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close()
    }

    // MARK: The end

    /// Nothing came of the connection, or the peer broke it.
    func fail(_ why: String) {
        if phase == .opening || phase == .open { reportFailure(why) }
        close()
    }

    /// Tells the hub that the peer broke the connection, or that nothing came of it.
    func reportFailure(_ why: String) {
        guard phase == .opening else { return hub.protocolFaultOccurred(remote, why: why) }
        // Told here, so that it is not told again when the channel is gone.
        phase = .closing
        hub.connectionFailed(remote, dialled: dialled, why: why)
    }

    func close() {
        guard let context else { return }
        session.close()
        sendOutput()
        context.close(promise: nil)
    }
}

/// What goes.
extension PeerConnection {
    /// Flushes when all that is ready in this turn of the loop has been looked at: what many
    /// clients ask goes out as one.
    func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    /// Frames what may be sent now, encrypts it, and hands it to the socket.
    func flush() {
        guard let context, phase != .closed, !isFlushing, !isReading, session.isEstablished else {
            return
        }
        isFlushing = true
        defer { isFlushing = false }
        var isLast = false
        while context.channel.isWritable || link.state == .closing {
            var (count, framesCount) = (0, 0)
            framing: while count < Self.bufferedBytesMax {
                switch link.nextOutput() {
                case .control(let frame):
                    pendingPlaintext.append(frame)
                    count += frame.count
                case .data(let head):
                    pendingPlaintext.append(head.bytes)
                    // Nobody has announced it: the frame cannot be made.
                    guard let answering = handlers[head.stream] else { return close() }
                    answering.writeBody(head.payloadBytes, into: &pieces)
                    for piece in pieces { pendingPlaintext.append(piece) }
                    pieces.removeAll(keepingCapacity: true)
                    count += PeerFrameHeader.bytesCount + head.payloadBytes
                case .idle: break framing
                case .close:
                    isLast = true
                    break framing
                }
                framesCount += 1
            }
            guard count > 0 else { break }
            hub.counters.add(.peerFramesSent, framesCount)
            hub.counters.add(.peerSentBytes, count)
            pendingPlaintext.write(to: session, now: SystemClock.now())
            sendOutput()
        }
        if isLast { closeOutput() }
    }

    /// All is said: waits a little for the peer to close, so that it has the time to read it.
    func closeOutput() {
        guard phase != .closed, let context else { return }
        if phase == .open || phase == .opening { phase = .closing }
        session.close()
        sendOutput()
        context.close(mode: .output, promise: nil)
        deadline?.cancel()
        let time = TimeAmount.nanoseconds(Self.closeTimeout.nanoseconds)
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
            self.context?.close(promise: nil)
        }
    }

    func sendOutput() {
        guard let context, let output = session.takeOutput() else { return }
        writer.append(output)
        // What the socket does not take waits in the channel, which tells when that is too much.
        _ = writer.flush(context)
    }
}

/// Plaintext that is to be encrypted: small pieces are copied side by side, as they would be into a
/// record; large ones are kept by reference.
struct PlaintextBuffer {
    /// What comes before ``tail``.
    private var pieces: [ByteBuffer] = []
    private var tail = ByteBuffer()

    /// A piece of this size fills a record by itself.
    private static let referenceBytesMin = 16 << 10
    /// More room is not kept from one time to the next.
    private static let retainedBytesMax = 64 << 10

    mutating func append(_ bytes: [UInt8]) {
        tail.writeBytes(bytes)
    }

    mutating func append(_ bytes: InlineArray<12, UInt8>) {
        for index in bytes.indices { tail.writeInteger(bytes[index]) }
    }

    mutating func append(_ piece: ByteBuffer) {
        guard piece.readableBytes >= Self.referenceBytesMin else {
            tail.writeImmutableBuffer(piece)
            return
        }
        endTail()
        pieces.append(piece)
    }

    private mutating func endTail() {
        guard tail.readableBytes > 0 else { return }
        pieces.append(tail)
        tail = ByteBuffer()
    }

    /// Encrypts everything, and is empty again.
    mutating func write(to session: TLSSession, now: Instant) {
        if pieces.isEmpty {
            session.write(tail, now: now)
        } else {
            endTail()
            session.write(pieces, now: now)
            pieces.removeAll()
        }
        if tail.capacity > Self.retainedBytesMax { tail = ByteBuffer() } else { tail.clear() }
    }
}
