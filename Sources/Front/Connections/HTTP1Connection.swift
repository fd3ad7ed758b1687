import Ground
import HTTPRules
import NIOCore
import Platform
import Store
import Telemetry
import Wire

/// A client connection of HTTP/1.1 or 1.0, which reads requests and sends a handler's responses in
/// order.
///
/// While a response is in progress, further input waits in `input`; beyond a limit it stays in the
/// socket.
///
/// Confined to its event loop.
final class HTTP1Connection: ChannelDuplexHandler, RemovableChannelHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let loopContext: EventLoopContext
    /// Handler of the requests of this connection.
    let handler: RequestHandler
    /// Sender of its responses.
    let response: ResponseSender
    /// Index in ``ConnectionTable/all``.
    var index = 0
    var phase = HTTP1Phase.idle
    /// Instant by which the client must have sent what ``phase`` waits for.
    var deadline = Instant.distantFuture
    /// Context of this handler in the channel's pipeline; `nil` while it is in none.
    var context: ChannelHandlerContext?
    /// True if the parser's limits differ from those in the current settings.
    var hasOutdatedLimits = false
    /// Decoder of a body that is buffered or forwarded to an origin.
    var bodyDecoder = BodyDecoder(.none)
    /// The request whose body is being read before its response.
    var bufferedRequest: BufferedRequest?
    /// True until the first request was read; until then the input may turn out to be HTTP/2.
    var isFirstRequest = true
    /// Bytes read from the socket and not yet processed.
    var input = ByteBuffer()
    /// Responses on their way to the socket.
    var output = ConnectionOutput(entriesCount: 8)
    /// True if the client has closed its sending side.
    var hasInputEnded = false
    /// True if a read that the channel requested is held back.
    var isReadPending = false
    /// Input bytes discarded since the last response.
    var discardedBytes = 0

    var plane: Plane { handler.plane }
    var client: Client? { response.client }
    var settings: NodeSettings { loopContext.settings }
    var queuedBytes: Int { output.queuedBytes }

    /// Creates a connection for a channel of the loop of `loopContext`.
    init(on loopContext: EventLoopContext, plane: Plane, client: Client) {
        self.loopContext = loopContext
        handler = RequestHandler(on: loopContext, plane: plane, protocolVersion: .http1)
        response = handler.response
        response.client = client
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if client?.isSecure == false { output.writer.open(context) }
        response.writer = self
        loopContext.connections.add(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if context.channel.isActive, loopContext.hasAccessLog {
            response.client?.recordRemoteAddress()
        }
    }

    func channelActive(context: ChannelHandlerContext) {
        if loopContext.hasAccessLog { response.client?.recordRemoteAddress() }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        output.writer.close()
        context.fireChannelInactive()
    }

    /// Cancels everything in progress; runs last, even for a channel closed before it became
    /// active.
    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        handler.connectionClosed()
        output.close()
        loopContext.connections.remove(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if !output.hasUnflushed { loopContext.headBuffers.begin() }
        if phase == .lingering || phase == .ending { return discard(buffer.readableBytes) }
        guard input.readableBytes == 0, !isInputPaused else {
            input.writeBuffer(&buffer)
            if !isInputPaused { consumeInput() }
            return
        }
        let used = consume(buffer.readableBytesUInt8Span)
        guard used < buffer.readableBytes, phase.acceptsRequests else { return }
        buffer.moveReaderIndex(forwardBy: used)
        input.clear()
        input.writeBuffer(&buffer)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
    }

    /// Holds reading back while the client has enough pipelined requests or unread output.
    func read(context: ChannelHandlerContext) {
        if isInputPaused
            && (input.readableBytes >= settings.pipelineBytesMax || handler.upload != nil)
            || queuedBytes >= NodeSettings.queuedBytesMax
        {
            isReadPending = true
        } else {
            context.read()
        }
    }

    /// True if input must wait: a response is in progress, or the origin accepts no more of a body.
    private var isInputPaused: Bool { response.isResponding && !handler.acceptsUpload }

    /// Handles the drained socket: the water mark is one byte, so writable means that everything
    /// flushed was accepted.
    ///
    /// Output that was not flushed is covered by the next flush.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable, !output.hasUnflushed else { return }
        socketDrained()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        inputClosed()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Adds bytes to the output and counts them; drops them once the connection has ended.
    @inline(__always)
    func write(_ buffer: ByteBuffer) {
        guard context != nil else { return }
        if plane == .data { loopContext.counters.add(.sentBytes, buffer.readableBytes) }
        output.append(buffer)
    }
}

// MARK: - Management by the event loop context

extension HTTP1Connection {
    /// Checks the deadlines; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant) {
        if output.hasStalled(context, now, loopContext.settings.sendTimeout) {
            loopContext.counters.add(.timeoutsSend)
            return abort()
        }
        if response.isResponding {
            handler.ticked(now)
            return flush()
        }
        if hasAuthenticationTimedOut(now) { return close() }
        guard now >= deadline else { return }
        switch phase {
        // Not idle until its response was accepted, and sends nothing while reads are held back.
        case .idle where output.stall.isActive: return
        case .head where isReadPending, .body where isReadPending: return
        case .idle:
            loopContext.counters.add(.timeoutsIdle)
            close()
        case .head:
            loopContext.counters.add(.timeoutsHead)
            refuse(.requestTimeout("head", seconds: settings.headTimeout.seconds))
        case .body:
            loopContext.counters.add(.timeoutsBody)
            refuse(.requestTimeout("body", seconds: settings.bodyTimeout.seconds))
        case .lingering: close()
        case .ending, .closed: break
        }
        flush()
    }

    /// Closes the connection as soon as no response is in progress, and a tunnel as soon as it is
    /// idle.
    func drain() {
        response.isDraining = true
        response.closesAfterResponse = true
        // A tunnel has no end of its own; it is ended as soon as it is idle.
        if let upload = handler.upload, upload.isTunnel {
            upload.updateDeadline(now: SystemClock.now())
        }
        if isQuiescent { close() }
    }

    /// Start of the idle time; a partially read head counts as idle, because it is not a request
    /// yet.
    var idleSince: Instant? {
        guard !response.isResponding, queuedBytes == 0, phase != .body else { return nil }
        return phase.timeLimit(settings).map { deadline - $0 }
    }

    /// True if nothing is in progress in either direction.
    var isQuiescent: Bool {
        phase == .idle && !response.isResponding && queuedBytes == 0 && input.readableBytes == 0
    }

    /// Applies new settings: running deadlines shift as if set with the new time limits, and the
    /// next request is parsed with the new limits.
    ///
    /// A partially read head and a request whose body is in progress keep their old limits: their
    /// bytes are parsed twice, with results that must agree.
    func settingsChanged(from old: NodeSettings) {
        hasOutdatedLimits = handler.parser.limits != settings.headLimits
        if response.client?.remote == "-", loopContext.hasAccessLog {
            response.client?.recordRemoteAddress()
        }
        output.stall.reconfigure(settings, after: old)
        guard !response.isResponding, let limit = phase.timeLimit(settings),
            let oldLimit = phase.timeLimit(old)
        else { return }
        deadline.shift(from: oldLimit, to: limit)
    }
}

/// The state of an ``HTTP1Connection`` while its handler sends no response.
enum HTTP1Phase {
    /// Between two requests, with no byte of the next one read.
    case idle
    /// A request head was read in part.
    case head
    /// The body of a buffered request is being read; the response follows it.
    case body
    /// The last response is complete, but not all of it has reached the socket.
    case ending
    /// The last response has reached the socket; input is discarded until the client closes (RFC
    /// 9112 §9.6).
    case lingering
    case closed

    /// True if further requests are processed.
    var acceptsRequests: Bool {
        switch self {
        case .idle, .head, .body: true
        case .ending, .lingering, .closed: false
        }
    }

    /// Returns the time limit of the client's next step; `nil` if none is expected.
    func timeLimit(_ settings: NodeSettings) -> Interval? {
        switch self {
        case .idle: settings.idleTimeout
        case .head: settings.headTimeout
        case .body: settings.bodyTimeout
        case .lingering: settings.lingerTimeout
        case .ending, .closed: nil
        }
    }
}
