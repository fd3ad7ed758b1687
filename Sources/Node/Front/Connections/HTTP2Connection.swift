import Ground
import NIOCore
import Store
import Telemetry
import Wire

/// One client's connection of HTTP/2 (RFC 9113): carries as many requests at once as the settings
/// allow, each answered by a door of its own.
///
/// Frames are made only while the socket takes them, so that what is sent next is decided late.
///
/// Confined to its event loop.
final class HTTP2Connection: ChannelDuplexHandler, MissSchedulerWaiter {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case open
        /// The last frame is written, and not all of it is with the socket.
        case ending
        /// The last frame is with the socket; what the client still sends is dropped until it
        /// closes.
        case lingering
        case closed
    }

    let loopContext: EventLoopContext
    private let peer: Client
    var client: Client? { peer }
    /// Operators are spoken to in HTTP/1.1 alone.
    let plane = RequestHandler.Plane.data
    var index = 0
    private(set) lazy var session = HTTP2ServerSession(
        settings: HTTP2Settings(settings), delegate: self)
    var phase = Phase.open
    /// A request must have come by this instant, while none is being answered.
    var deadline = Instant.distantFuture
    var writeStall = WriteStall()
    private var context: ChannelHandlerContext?
    private let writer = SocketWriter()
    /// Bytes written since the socket last had everything.
    private(set) var queuedBytes = 0
    /// What the bytes not yet in the socket are taken from.
    private var retainedEntries: [MemoryEntry] = []
    private var isReading = false
    private var isFlushing = false
    private var isReadPending = false
    private var discardedBytes = 0
    /// The client sends nothing more.
    private var hasInputEnded = false
    /// When the end of the connection was announced.
    var drainingSince: Instant?
    var now = Instant.zero
    /// When a request's head was first seen to be not whole.
    var incompleteHeadSince: Instant?

    var settings: NodeSettings { loopContext.settings }

    init(on loopContext: EventLoopContext, client: Client) {
        self.loopContext = loopContext
        peer = client
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !peer.isSecure { writer.open(context) }
        loopContext.connectionOpened(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if loopContext.hasAccessLog { peer.recordRemoteAddress() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        writer.close()
        session.transportClosed(.cancel)
        retainedEntries.removeAll()
        loopContext.connectionClosed(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        guard phase == .open else { return discard(buffer.readableBytes) }
        now = SystemClock.now()
        isReading = true
        _ = session.receive(buffer.readableBytesUInt8Span, now: now)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        flush()
    }

    /// Reading is held back while a client does not take what it has asked for.
    func read(context: ChannelHandlerContext) {
        if phase == .open, queuedBytes >= Self.queuedBytesMax || session.isReceivingPaused {
            isReadPending = true
        } else {
            context.read()
        }
    }

    /// The water marks are one byte: writable means that the socket has taken everything.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable else { return }
        socketDrained()
    }

    private func socketDrained() {
        retainedEntries.removeAll(keepingCapacity: true)
        queuedBytes = 0
        writeStall.end()
        guard phase == .ending || session.hasOutput || isReadPending else { return }
        // Not here: the flush that led to this call is still under way.
        loopContext.loop.assumeIsolated().execute { [self] in outputDrained() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        hasInputEnded = true
        if phase == .open, session.openStreamCount > 0 {
            // Nothing can be agreed on any more, windows least of all.
            abort()
        } else if phase == .open {
            beginEnding()
        } else if phase == .lingering {
            close()
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: The output

    /// Bytes of frames that may be on their way to the socket: more would be sent in an order that
    /// nothing can change any more.
    private static let queuedBytesMax = 256 << 10

    /// Makes frames of what may be sent and hands them to the socket; not while a read goes on,
    /// after which it is done in any case.
    func flush() {
        guard !isReading, !isFlushing, phase == .open, let context else { return }
        isFlushing = true
        defer { isFlushing = false }
        let queuedBefore = queuedBytes
        while queuedBytes < Self.queuedBytesMax, session.hasOutput {
            now = SystemClock.now()
            let bytes = session.takeOutput(
                into: &writer.buffers, bytesMax: Self.queuedBytesMax - queuedBytes, now: now)
            guard bytes > 0 else { break }
            queuedBytes += bytes
        }
        loopContext.counters.add(.sentBytes, queuedBytes - queuedBefore)
        if writer.flush(context) { socketDrained() }
        if queuedBytes > 0, !writeStall.isActive {
            writeStall.begin(bufferedBytes, SystemClock.now(), settings)
        }
        if session.isFinished { beginEnding() }
    }

    private func outputDrained() {
        if phase == .ending { return queuedBytes == 0 ? beginLingering() : () }
        flush()
        resumeReading()
    }

    private func resumeReading() {
        guard isReadPending, queuedBytes < Self.queuedBytesMax, !session.isReceivingPaused,
            let context
        else {
            return
        }
        isReadPending = false
        context.read()
    }

    func turnGranted(now: Instant) {
        guard phase == .open else { return }
        self.now = now
        isReading = true
        _ = session.resumeReceiving(now: now)
        isReading = false
        flush()
        resumeReading()
    }

    /// Keeps what was lent until the socket has taken everything.
    func retain(_ entry: MemoryEntry) {
        // With nothing on its way nobody would let go of it.
        if queuedBytes > 0 || isFlushing { retainedEntries.append(entry) }
    }

    var bufferedBytes: Int { context?.channel.queuedBytes ?? queuedBytes }

    // MARK: The end

    /// How long a client may take to hear that the connection ends.
    static let goAwayTimeout = Interval.seconds(1)

    private func beginEnding() {
        guard phase == .open else { return }
        phase = .ending
        if queuedBytes == 0 { beginLingering() }
    }

    private func beginLingering() {
        guard let context else { return }
        phase = .lingering
        deadline = SystemClock.now() + settings.lingerTimeout
        context.close(mode: .output, promise: nil)
        if hasInputEnded { return close() }
        if isReadPending { context.read() }
    }

    private func discard(_ bytes: Int) {
        discardedBytes += bytes
        if discardedBytes > settings.lingerBytesMax { close() }
    }

    func close() {
        guard phase != .closed, let context else { return }
        phase = .closed
        context.close(promise: nil)
    }

    func abort() {
        guard phase != .closed, let context else { return }
        phase = .closed
        peer.isAborted = true
        context.channel.reset()
    }
}

extension HTTP2Connection: HTTP2ServerDelegate {
    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        deadline = now + settings.idleTimeout
        // What was written into them is with nghttp2 by now.
        loopContext.headBuffers.begin()
        let exchange = loopContext.reuseExchange()
        exchange.begin(stream, of: self, head: head, linesCount: linesCount, now: now)
        if exchange.detach() { return loopContext.recycle(exchange) }
        // What is behind it waits with it, so that a connection has one request in line.
        guard exchange.isQueued else { return }
        session.pauseReceiving()
        loopContext.missScheduler.queue.append(self, of: exchange.shareHolder)
    }

    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool) {
        loopContext.reuseExchange().begin(stream, of: self, refusing: refusal)
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        exchange(of: stream)?.bodyArrived(bytes, now: now)
    }

    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        exchange(of: stream)?.bodyEnded(trailers, now: now)
    }

    func streamDrained(_ stream: HTTP2Stream) {
        exchange(of: stream)?.drained()
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {
        if let exchange = exchange(of: stream) {
            exchange.streamClosed()
            loopContext.recycle(exchange)
        } else if let source = stream.source {
            retain(unsafe unsafeDowncast(source, to: MemoryEntry.self))
        }
        deadline = now + settings.idleTimeout
    }

    @inline(__always)
    func exchange(of stream: HTTP2Stream) -> HTTP2Exchange? {
        stream.owner.map { unsafe unsafeDowncast($0, to: HTTP2Exchange.self) }
    }
}

extension HTTP2Settings {
    init(_ settings: NodeSettings) {
        self.init(
            concurrentStreamsMax: settings.streamsMax,
            headBytesMax: settings.headLimits.headBytesMax,
            fieldsMax: settings.headLimits.fieldsMax)
    }
}
