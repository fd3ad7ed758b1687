import Ground
import NIOCore
import Platform
import Store
import Telemetry
import Wire

/// A client connection of HTTP/2 (RFC 9113), with one exchange, and so one handler, for each
/// concurrent request.
///
/// Frames are produced only while the socket accepts them, so that priorities are applied as late
/// as possible.
///
/// Confined to its event loop.
final class HTTP2Connection: ChannelDuplexHandler, MissSchedulerWaiter {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The state of the connection.
    enum Phase {
        case open
        /// The last frame is written, but not all output has reached the socket.
        case ending
        /// The last frame has reached the socket; input is discarded until the client closes.
        case lingering
        case closed
    }

    let loopContext: EventLoopContext
    private let connectedClient: Client
    var client: Client? { connectedClient }
    /// The admin port serves HTTP/1.1 only.
    let plane = Plane.data
    var index = 0
    /// The HTTP/2 protocol state.
    private(set) lazy var session = HTTP2ServerSession(
        settings: HTTP2Settings(settings), delegate: self)
    var phase = Phase.open
    /// Instant by which a request must arrive while no stream is open.
    var deadline = Instant.distantFuture
    private(set) var context: ChannelHandlerContext?
    /// Frames on their way to the socket.
    var output = ConnectionOutput()
    /// True during a read, after which output is flushed.
    private var isReading = false
    /// True during a flush, which must not be entered again.
    private var isFlushing = false
    /// True if a read that the channel requested is held back.
    private var isReadPending = false
    /// Input bytes discarded after the last frame.
    private var discardedBytes = 0
    /// True if the client has closed its sending side.
    private var hasInputEnded = false
    /// When the graceful shutdown began; `nil` before.
    var drainingSince: Instant?
    /// Time of the event being processed.
    var now = Instant.zero
    /// When an incomplete request head was first seen; `nil` if all heads are complete.
    var incompleteHeadSince: Instant?

    var settings: NodeSettings { loopContext.settings }

    /// Creates a connection for a channel of the loop of `loopContext`.
    init(on loopContext: EventLoopContext, client: Client) {
        self.loopContext = loopContext
        connectedClient = client
    }

    /// Replaces an HTTP/1 connection whose client begins with the HTTP/2 preface in `bytes` from
    /// `start` on (prior knowledge, RFC 9113 §3.3); returns false if it does not.
    static func replace(
        _ connection: HTTP1Connection, _ bytes: Span<UInt8>, from start: Int
    ) -> Bool {
        let preface = Array("PRI * HTTP/2.0\r\n".utf8)
        guard connection.plane == .data, bytes.count - start >= preface.count,
            let context = connection.context, let client = connection.client, !client.isSecure,
            bytes.copy(start..<start + preface.count) == preface
        else { return false }
        let rest = ByteBuffer(bytes: bytes.copy(start..<bytes.count))
        let pipeline = context.pipeline.syncOperations
        let next = HTTP2Connection(on: connection.loopContext, client: client)
        do { try pipeline.addHandler(next, position: .after(connection)) } catch { return false }
        context.fireChannelRead(NIOAny(rest))
        if connection.response.isDraining { next.drain() }
        pipeline.removeHandler(connection, promise: nil)
        return true
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !connectedClient.isSecure { output.writer.open(context) }
        loopContext.connections.add(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if loopContext.hasAccessLog { connectedClient.recordRemoteAddress() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        output.writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        session.transportClosed(.cancel)
        output.close()
        loopContext.connections.remove(self)
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

    /// Holds reading back while the client leaves too much output unread.
    func read(context: ChannelHandlerContext) {
        if phase == .open, output.queuedBytes >= Self.queuedBytesMax || session.isReceivingPaused {
            isReadPending = true
        } else {
            context.read()
        }
    }

    /// Handles the drained socket: the water mark is one byte, so writable means that everything
    /// was accepted.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable else { return }
        socketDrained()
    }

    /// Releases the entries after the socket has accepted everything, and schedules what continues
    /// then.
    private func socketDrained() {
        output.drained()
        output.stall.end()
        guard phase == .ending || session.hasOutput || isReadPending else { return }
        // Deferred: the flush that led to this call is still on the call stack.
        loopContext.loop.assumeIsolated().execute { [self] in outputDrained() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        hasInputEnded = true
        if phase == .open, session.openStreamCount > 0 {
            // Flow-control windows can no longer be opened, so the streams cannot complete.
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

    /// Maximum number of frame bytes queued for the socket; the order of queued frames can no
    /// longer change.
    private static let queuedBytesMax = 256 << 10

    /// Produces frames and writes them to the socket; does nothing during a read, which ends with a
    /// flush.
    func flush() {
        guard !isReading, !isFlushing, phase == .open, let context else { return }
        isFlushing = true
        defer { isFlushing = false }
        let queuedBefore = output.queuedBytes
        while output.queuedBytes < Self.queuedBytesMax, session.hasOutput {
            now = SystemClock.now()
            let bytes = session.takeOutput(
                into: &output.writer.buffers, bytesMax: Self.queuedBytesMax - output.queuedBytes,
                now: now)
            guard bytes > 0 else { break }
            output.queuedBytes += bytes
        }
        loopContext.counters.add(.sentBytes, output.queuedBytes - queuedBefore)
        if output.writer.flush(context) { socketDrained() }
        output.watchStall(context, loopContext.settings.sendTimeout)
        if session.isFinished { beginEnding() }
    }

    /// Continues the output after the socket has accepted everything.
    private func outputDrained() {
        if phase == .ending { return output.queuedBytes == 0 ? beginLingering() : () }
        flush()
        resumeReading()
    }

    /// Requests the read that was held back, unless output or session still pause input.
    private func resumeReading() {
        guard isReadPending, output.queuedBytes < Self.queuedBytesMax, !session.isReceivingPaused,
            let context
        else {
            return
        }
        isReadPending = false
        context.read()
    }

    /// Resumes the input that was paused behind the request that waited for a turn.
    func turnGranted(now: Instant) {
        guard phase == .open else { return }
        self.now = now
        isReading = true
        _ = session.resumeReceiving(now: now)
        isReading = false
        flush()
        resumeReading()
    }

    /// Keeps a memory entry until the socket has accepted everything that is queued; does nothing
    /// if nothing is queued.
    func retain(_ entry: MemoryEntry) {
        // With nothing queued, no event would release the entry.
        if output.queuedBytes > 0 || isFlushing { output.retain(entry) }
    }

    // MARK: The end

    /// Time given to the client to react to the announced shutdown.
    static let goAwayTimeout = Interval.seconds(1)

    /// Ends the connection after the last frame was produced.
    private func beginEnding() {
        guard phase == .open else { return }
        phase = .ending
        if output.queuedBytes == 0 { beginLingering() }
    }

    /// Shuts down the sending side after the last frame reached the socket; closes at once if the
    /// client has closed its own.
    private func beginLingering() {
        guard let context else { return }
        phase = .lingering
        deadline = SystemClock.now() + settings.lingerTimeout
        context.close(mode: .output, promise: nil)
        if hasInputEnded { return close() }
        if isReadPending { context.read() }
    }

    /// Counts discarded input bytes, and closes once they exceed `lingerBytesMax`.
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
        connectedClient.isAborted = true
        context.channel.reset()
    }
}

extension HTTP2Connection: HTTP2ServerDelegate {
    /// Starts an exchange for the request; pauses the input if the request must wait for a turn.
    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        deadline = now + settings.idleTimeout
        // Earlier contents of these buffers were copied by nghttp2 by now.
        loopContext.headBuffers.begin()
        let exchange = loopContext.reuseExchange()
        exchange.begin(stream, of: self, head: head, linesCount: linesCount, now: now)
        if exchange.detach() { return loopContext.recycle(exchange) }
        // Requests behind this one wait too, so that a connection has at most one request in the
        // queue.
        guard exchange.isQueued else { return }
        session.pauseReceiving()
        loopContext.missScheduler.queue.append(self, of: exchange.quotaHolder)
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

    /// Ends the stream's exchange; of a detached one, keeps the entry until its bytes are sent.
    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {
        if let exchange = exchange(of: stream) {
            exchange.streamClosed()
            loopContext.recycle(exchange)
        } else if let source = stream.source {
            retain(unsafe unsafeDowncast(source, to: MemoryEntry.self))
        }
        deadline = now + settings.idleTimeout
    }

    /// Returns the exchange of a stream; `nil` after it was detached.
    @inline(__always)
    func exchange(of stream: HTTP2Stream) -> HTTP2Exchange? {
        stream.owner.map { unsafe unsafeDowncast($0, to: HTTP2Exchange.self) }
    }
}

extension HTTP2Settings {
    /// Creates the HTTP/2 settings announced to clients.
    init(_ settings: NodeSettings) {
        self.init(
            concurrentStreamsMax: settings.streamsMax,
            headBytesMax: settings.headLimits.headBytesMax,
            fieldsMax: settings.headLimits.fieldsMax)
    }
}
