package import Cluster
import Ground
package import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

/// The id of a connection with a peer; connections with origins have ids of their own.
typealias PeerConnectionID = Cluster.ConnectionID

/// A connection with a peer: TLS and framing around the decisions of `Cluster.PeerLink`.
///
/// Confined to its loop, except for the functions in PeerConnection+Sending.swift and properties
/// that say otherwise.
package final class PeerConnection: ChannelInboundHandler, @unchecked Sendable {
    /// Encrypted bytes of the peer.
    package typealias InboundIn = ByteBuffer
    /// Encrypted bytes for the peer.
    package typealias OutboundOut = ByteBuffer

    /// The phase of a connection.
    enum Phase {
        /// The TLS handshake is not complete, or HELLO has not arrived.
        case opening
        case open
        /// Input is ignored; the last output is being sent.
        case closing
        case closed
    }

    /// The id in this process.
    let id: PeerConnectionID
    /// The address that this node dialled; `nil` if the peer dialled.
    let dialled: PeerAddress?
    /// The name of the peer in the log.
    package let remote: String
    /// The node's membership.
    package let hub: PeerHub
    /// The permit that counts against the limit of connections, held as long as the connection
    /// exists.
    let permit: PeerConnectionPermit
    /// The TLS session.
    let session: TLSSession
    /// The decisions about frames and streams.
    package var link: PeerLink
    /// The queries of this node.
    let requests = PeerRequestTable()
    /// The handlers of the peer's queries, by stream.
    var handlers: [UInt32: any PeerQueryHandler] = [:]
    /// True while input is processed, when nothing is flushed.
    var isReading = false
    var phase = Phase.opening
    /// The context of the channel's handler; `nil` before and after.
    var context: ChannelHandlerContext?
    /// The timeout of the handshake, or of the peer's close.
    var deadline: Scheduled<Void>?
    /// The plaintext that is not processed yet.
    var input = PeerInput()
    /// The id of the peer, `nil` before its HELLO; thread-safe.
    var peer: NodeID? { peerID.withLock { $0 } }
    /// The storage of ``peer``.
    let peerID = Mutex<NodeID?>(nil)
    /// The last message of the peer; `nil` if it sent none.
    var goodbye: Goodbye?
    /// True inside ``flush()``.
    var isFlushing = false
    /// The frames to be encrypted.
    var pendingPlaintext = PlaintextBuffer()
    /// A reused buffer for the pieces of a body.
    var pieces: [ByteBuffer] = []
    /// The writer to the socket.
    let writer = SocketWriter()
    /// True if a flush is scheduled for the end of this turn of the loop.
    var isFlushScheduled = false
    /// The time of the last input.
    var lastReadAt = Instant.zero
    /// True if a query without any reply was cancelled after a wait, and no input has come since.
    ///
    /// Until there is input, queries to the peer are useless. Thread-safe.
    let isUnresponsive = Atomic<Bool>(false)
    /// The number of this node's applied invalidations that the peer had or was sent with the last
    /// query on this connection; `nil` before the first query.
    var sentInvalidationCount: UInt64?
    /// The number of the last of this node's own records that was sent on this connection ahead of
    /// queries; 0 for none.
    var pushedRecordNumber: UInt64 = 0
    /// True once the channel was active.
    var wasActive = false

    /// Maximum time from the dial or accept to the peer's HELLO.
    static let handshakeTimeout = Interval.seconds(5)
    /// Maximum time that a peer has to read the reason for the close.
    static let closeTimeout = Interval.seconds(1)
    /// The number of bytes that are framed before they are encrypted and passed to the socket.
    static let bufferedBytesMax = 256 << 10

    /// Creates a connection for a new channel.
    ///
    /// - Parameters:
    ///   - id: the id in this process.
    ///   - hub: the node's membership.
    ///   - place: the permit, which the connection holds.
    ///   - dialled: the dialled address; `nil` for an accepted connection.
    ///   - remote: the name of the peer in the log.
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

    /// Runs `body` on the connection's loop, at once if that is the current one; does nothing
    /// before the loop is known.
    func onLoop(_ body: @escaping @Sendable (PeerConnection) -> Void) {
        guard let loop else { return }
        if loop.inEventLoop { body(self) } else { loop.execute { body(self) } }
    }

    /// The event loop; `nil` only before the channel is set up, and set before other threads know
    /// the connection.
    package var loop: (any EventLoop)?

    // MARK: The channel

    /// Begins the handshake if the channel is active already.
    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loop = context.eventLoop
        guard context.channel.isActive else { return }
        begin(context)
    }

    /// Begins the handshake.
    package func channelActive(context: ChannelHandlerContext) {
        begin(context)
    }

    /// Starts the handshake and its timeout on an active channel.
    func begin(_ context: ChannelHandlerContext) {
        wasActive = true
        let time = TimeAmount.nanoseconds(Self.handshakeTimeout.nanoseconds)
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
            guard phase == .opening else { return }
            fail("the peer sent no HELLO within \(Self.handshakeTimeout.seconds) s")
        }
        writer.open(context)
        session.start()
        sendOutput()
    }

    /// Stops writing to the socket, whose descriptor may be reused.
    package func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    /// Ends all queries and handlers, and reports to the hub that the connection was closed or, if
    /// it never opened, that it failed.
    package func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        writer.close()
        let wasOpening = phase == .opening
        phase = .closed
        self.context = nil
        for event in link.connectionEnded() { handle(event) }
        for answering in handlers.values { answering.cancelled() }
        handlers = [:]
        // The dialler reports a dial without a response.
        guard wasActive else { return }
        if wasOpening {
            hub.connectionFailed(remote, dialled: dialled, why: "the connection was closed")
        } else {
            hub.connectionClosed(id, goodbye)
        }
    }

    /// Decrypts and processes input.
    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
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
                return fail(failure.message, rejection(failure.cause))
            }
            guard phase == .opening || phase == .open else { return }
        }
    }

    /// Delivers entries that began in this read, and sends what it has caused.
    package func channelReadComplete(context: ChannelHandlerContext) {
        requests.deliverReceivedEntries()
        isReading = false
        flush()
        context.fireChannelReadComplete()
    }

    /// Goes on to send once the socket accepts more.
    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { flush() }
        context.fireChannelWritabilityChanged()
    }

    /// Closes the connection after an error of the channel.
    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close()
    }

    // MARK: The end

    /// Closes the connection because of a failed handshake or a violation of the protocol, which is
    /// reported to the hub unless the connection is closing already.
    func fail(_ why: String, _ rejection: PeerRejections.Reason? = nil) {
        if phase == .opening || phase == .open { reportFailure(why, rejection) }
        close()
    }

    /// Reports a violation of the protocol on an open connection to the hub; before HELLO, a failed
    /// connection, after which input is ignored.
    func reportFailure(_ why: String, _ rejection: PeerRejections.Reason? = nil) {
        guard phase == .opening else { return hub.protocolFaultOccurred(remote, why: why) }
        // Reported here, so that it is not reported again when the channel is closed.
        phase = .closing
        hub.connectionFailed(remote, dialled: dialled, why: why, rejection)
    }

    /// Returns why the other end cannot be a peer, if its TLS handshake shows it; `nil` for a
    /// stranger that has dialled, such as a port scanner.
    private func rejection(_ cause: TLSFailureCause) -> PeerRejections.Reason? {
        switch cause {
        case .noSharedSecret where dialled != nil || session.wasUnknownIdentity: .otherSecret
        case .notTLS where dialled != nil: .otherProtocol
        default: nil
        }
    }

    /// Sends close_notify and closes the channel at once; does nothing if it is closed.
    func close() {
        guard let context else { return }
        session.close()
        sendOutput()
        context.close(promise: nil)
    }
}

/// Output of a connection.
extension PeerConnection {
    /// Schedules a flush for the end of this turn of the loop, so that the queries of many clients
    /// are sent together.
    package func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    /// Frames and encrypts what may be sent now, and passes it to the socket; does nothing during
    /// the handshake and while input is processed, after which it is called again.
    package func flush() {
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
                    // The frame cannot be built, because no handler has announced the body.
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

    /// Closes the output after the last frame, and gives the peer a short time to read it and
    /// close.
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

    /// Passes the session's output to the socket.
    func sendOutput() {
        guard let context, let output = session.takeOutput() else { return }
        writer.append(output)
        // The channel buffers what the socket does not accept, and reports when that is too much.
        _ = writer.flush(context)
    }
}

/// The plaintext to be encrypted: small pieces are copied together, as into one TLS record, and
/// large ones are kept by reference.
struct PlaintextBuffer {
    /// The buffers before ``tail``.
    private var pieces: [ByteBuffer] = []
    /// The buffer that small pieces are appended to.
    private var tail = ByteBuffer()

    /// The size in bytes of a TLS record; a piece of at least this size is kept by reference.
    private static let referenceBytesMin = 16 << 10
    /// The largest capacity in bytes of a buffer that is kept for reuse.
    private static let retainedBytesMax = 64 << 10

    /// Appends a copy of bytes.
    mutating func append(_ bytes: [UInt8]) {
        tail.writeBytes(bytes)
    }

    /// Appends a copy of a frame header.
    mutating func append(_ bytes: InlineArray<12, UInt8>) {
        for index in bytes.indices { tail.writeInteger(bytes[index]) }
    }

    /// Appends a buffer, by reference if it has at least ``referenceBytesMin`` bytes, else by copy.
    mutating func append(_ piece: ByteBuffer) {
        guard piece.readableBytes >= Self.referenceBytesMin else {
            tail.writeImmutableBuffer(piece)
            return
        }
        endTail()
        pieces.append(piece)
    }

    /// Moves the tail to the pieces.
    private mutating func endTail() {
        guard tail.readableBytes > 0 else { return }
        pieces.append(tail)
        tail = ByteBuffer()
    }

    /// Encrypts everything and empties the buffer.
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
