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

    /// The state of the connection while its handler sends no response.
    enum Phase {
        /// Between two requests, with no byte of the next one read.
        case idle
        /// A request head was read in part.
        case head
        /// The body of a buffered request is being read; the response follows it.
        case body
        /// The last response is complete, but not all of it has reached the socket.
        case ending
        /// The last response has reached the socket; input is discarded until the client closes
        /// (RFC 9112 §9.6).
        case lingering
        case closed
    }

    let loopContext: EventLoopContext
    /// Handler of the requests of this connection.
    let handler: RequestHandler
    /// Sender of its responses.
    let response: ResponseSender
    /// Index in ``ConnectionTable/all``.
    var index = 0
    var phase = Phase.idle
    /// Instant by which the client must have sent what ``phase`` waits for.
    var deadline = Instant.distantFuture
    /// Detects a client that stops reading.
    var writeStall = WriteStall()
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
    /// Memory entries that own the bytes queued for the socket.
    var retainedEntries: [MemoryEntry] = []
    /// Output that was not yet flushed.
    let writer = SocketWriter()
    /// Bytes written since the socket last had accepted everything.
    private(set) var queuedBytes = 0
    /// True if output was written since the last flush.
    var hasUnflushed = false
    /// True if the client has closed its sending side.
    var hasInputEnded = false
    /// True if a read that the channel requested is held back.
    var isReadPending = false
    /// Bytes of the buffered request body so far.
    var bodyBytes: UInt64 = 0
    /// Input bytes discarded since the last response.
    var discardedBytes = 0

    var plane: RequestHandler.Plane { handler.plane }
    var client: Client? { response.client }
    var settings: NodeSettings { loopContext.settings }

    /// Creates a connection for a channel of the loop of `loopContext`.
    init(on loopContext: EventLoopContext, plane: RequestHandler.Plane, client: Client) {
        self.loopContext = loopContext
        handler = RequestHandler(on: loopContext, plane: plane, protocolVersion: .http1)
        response = handler.response
        response.client = client
        retainedEntries.reserveCapacity(8)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if client?.isSecure == false { writer.open(context) }
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
        writer.close()
        context.fireChannelInactive()
    }

    /// Runs last, also for a channel that was closed before it became active.
    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        handler.connectionClosed()
        writer.close()
        retainedEntries.removeAll()
        loopContext.connections.remove(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if !hasUnflushed { loopContext.headBuffers.begin() }
        if phase == .lingering || phase == .ending { return discard(buffer.readableBytes) }
        guard input.readableBytes == 0, !isInputPaused else {
            input.writeBuffer(&buffer)
            if !isInputPaused { consumeInput() }
            return
        }
        let used = consume(buffer.readableBytesUInt8Span)
        guard used < buffer.readableBytes, !isLast else { return }
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
        guard context.channel.isWritable, !hasUnflushed else { return }
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

    /// Adds bytes to the output.
    @inline(__always)
    func write(_ buffer: ByteBuffer) {
        guard context != nil else { return }
        queuedBytes += buffer.readableBytes
        if plane == .data { loopContext.counters.add(.sentBytes, buffer.readableBytes) }
        hasUnflushed = true
        writer.append(buffer)
    }

    /// Sets ``queuedBytes`` to zero, after the socket has accepted everything.
    func resetQueuedBytes() {
        queuedBytes = 0
    }
}

// MARK: - Management by the event loop context

extension HTTP1Connection {
    /// Checks the deadlines; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant) {
        if writeStall.isActive {
            guard writeStall.checkProgress(bufferedBytes, now, settings) else {
                loopContext.counters.add(.timeoutsSend)
                return abort()
            }
        }
        if response.isResponding {
            handler.ticked(now)
            return flush()
        }
        if hasAuthenticationTimedOut(now) { return close() }
        guard now >= deadline else { return }
        switch phase {
        // Not idle until its response was accepted, and sends nothing while reads are held back.
        case .idle where writeStall.isActive: return
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

    /// Closes the connection as soon as no response is in progress.
    func drain() {
        response.isDraining = true
        response.closesAfterResponse = true
        // A tunnel has no end of its own; it is ended as soon as it is idle.
        if let upload = handler.upload, upload.isTunnel {
            upload.updateDeadline(now: SystemClock.now())
        }
        if isQuiescent { close() }
    }

    /// Returns true if an admin connection has not authenticated in time.
    private func hasAuthenticationTimedOut(_ now: Instant) -> Bool {
        guard plane == .admin, let client, !client.isAuthenticated else { return false }
        return now >= client.openedAt + NodeSettings.authenticationTimeout
    }

    /// A partially read head counts as idle, because it is not a request yet.
    var idleSince: Instant? {
        guard !response.isResponding, queuedBytes == 0 else { return nil }
        switch phase {
        case .idle: return deadline - settings.idleTimeout
        case .head: return deadline - settings.headTimeout
        case .lingering: return deadline - settings.lingerTimeout
        case .body, .ending, .closed: return nil
        }
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
        guard !response.isResponding else { return writeStall.reconfigure(settings, after: old) }
        switch phase {
        case .idle: deadline.shift(from: old.idleTimeout, to: settings.idleTimeout)
        case .head: deadline.shift(from: old.headTimeout, to: settings.headTimeout)
        case .body: deadline.shift(from: old.bodyTimeout, to: settings.bodyTimeout)
        case .ending, .lingering, .closed: break
        }
        writeStall.reconfigure(settings, after: old)
    }
}
