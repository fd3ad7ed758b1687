import Ground
import HTTPRules
import NIOCore
import Store
import Telemetry
import Wire

/// One client's connection, HTTP/1.1 or 1.0: reads requests, and carries a door's answers in order.
///
/// While an answer waits, what comes waits in `input`, and past a limit in the client's own socket.
///
/// Confined to its event loop.
final class HTTP1Connection: ChannelDuplexHandler, RemovableChannelHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What the connection is doing, while its door is not answering.
    enum Phase {
        /// Between two requests: nothing of the next one was read.
        case idle
        /// Part of a request's head was read.
        case head
        /// A body nobody asked for is read and dropped; the request is answered after it.
        case body
        /// The last answer is given, and not all of it is with the socket.
        case ending
        /// The last answer is with the socket; what the client still sends is dropped until it
        /// closes (RFC 9112 §9.6).
        case lingering
        case closed
    }

    let loopContext: EventLoopContext
    let handler: RequestHandler
    /// Where the hall keeps this connection.
    var index = 0
    var phase = Phase.idle
    /// The client must have sent what ``phase`` waits for by this instant.
    var deadline = Instant.distantFuture
    var writeStall = WriteStall()
    var context: ChannelHandlerContext?
    /// The parser has limits that are not the hall's any more.
    var hasOutdatedLimits = false
    /// Of the body that is being dropped, or goes to an origin.
    var bodyDecoder = BodyDecoder(.none)
    /// The request whose body is being dropped.
    var bufferedRequest: BufferedRequest?
    /// No request was read yet: it may turn out to be another protocol.
    var isFirstRequest = true
    /// Bytes that were read and not yet looked at.
    var input = ByteBuffer()
    /// What the bytes not yet in the socket are taken from.
    var retainedEntries: [MemoryEntry] = []
    /// What was written and is not on its way to the socket.
    let writer = SocketWriter()
    /// Bytes written since the socket last had everything.
    private(set) var queuedBytes = 0
    var hasUnflushed = false
    /// The client sends nothing more.
    var hasInputEnded = false
    /// A read that the channel asked for and that is held back.
    var isReadPending = false
    /// Bytes of the body that is being dropped.
    var bodyBytes: UInt64 = 0
    var discardedBytes = 0

    var plane: RequestHandler.Plane { handler.plane }
    var client: Client? { handler.client }
    var settings: NodeSettings { loopContext.settings }

    init(on loopContext: EventLoopContext, plane: RequestHandler.Plane, client: Client) {
        self.loopContext = loopContext
        handler = RequestHandler(on: loopContext, plane: plane, protocolVersion: .http1)
        handler.client = client
        retainedEntries.reserveCapacity(8)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if client?.isSecure == false { writer.open(context) }
        handler.writer = self
        loopContext.connectionOpened(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if context.channel.isActive, loopContext.hasAccessLog {
            handler.client?.recordRemoteAddress()
        }
    }

    func channelActive(context: ChannelHandlerContext) {
        if loopContext.hasAccessLog { handler.client?.recordRemoteAddress() }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    /// Comes last, also for a channel that was closed before it was ever active.
    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        handler.connectionClosed()
        writer.close()
        retainedEntries.removeAll()
        loopContext.connectionClosed(self)
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

    /// Reading is held back while a slow client has enough to do with what it has asked for.
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

    /// What comes now waits: an answer is in progress, or the origin takes no more of a body.
    private var isInputPaused: Bool { handler.isResponding && !handler.acceptsUpload }

    /// The water marks are one byte: writable means that the socket has taken what was flushed.
    ///
    /// Of what was not, the next flush tells.
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

    @inline(__always)
    func write(_ buffer: ByteBuffer) {
        guard context != nil else { return }
        queuedBytes += buffer.readableBytes
        if plane == .data { loopContext.counters.add(.sentBytes, buffer.readableBytes) }
        hasUnflushed = true
        writer.append(buffer)
    }

    func resetQueuedBytes() {
        queuedBytes = 0
    }
}

// MARK: - The hall

extension HTTP1Connection {
    /// Looks at the deadlines; called every ``EventLoopContext/tick``.
    func ticked(_ now: Instant) {
        if writeStall.isActive {
            guard writeStall.checkProgress(bufferedBytes, now, settings) else {
                loopContext.counters.add(.timeoutsSend)
                return abort()
            }
        }
        if handler.isResponding {
            handler.ticked(now)
            return flush()
        }
        if hasAuthenticationTimedOut(now) { return close() }
        guard now >= deadline else { return }
        switch phase {
        // It is not idle before it has its answer, and sends nothing while nobody reads.
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

    /// Closes as soon as no answer is in progress.
    func drain() {
        handler.isDraining = true
        handler.closesAfterResponse = true
        // Such a connection has no end of its own, and is ended as soon as it rests.
        if handler.upload?.isTunnel == true { handler.updateUploadDeadline(now: SystemClock.now()) }
        if isQuiescent { close() }
    }

    private func hasAuthenticationTimedOut(_ now: Instant) -> Bool {
        guard plane == .admin, let client, !client.isAuthenticated else { return false }
        return now >= client.openedAt + NodeSettings.authenticationTimeout
    }

    /// A head of which a part was read is no request yet.
    var idleSince: Instant? {
        guard !handler.isResponding, queuedBytes == 0 else { return nil }
        switch phase {
        case .idle: return deadline - settings.idleTimeout
        case .head: return deadline - settings.headTimeout
        case .lingering: return deadline - settings.lingerTimeout
        case .body, .ending, .closed: return nil
        }
    }

    /// Nothing is in progress in either direction.
    var isQuiescent: Bool {
        phase == .idle && !handler.isResponding && queuedBytes == 0 && input.readableBytes == 0
    }

    /// The hall has other settings now: time limits that run are as if they had run so from their
    /// start, and the next request is read with the new limits.
    ///
    /// A head of which a part was read, and a request whose body is under way, keep the limits they
    /// began with: their bytes are read twice, and must mean the same.
    func settingsChanged(from old: NodeSettings) {
        hasOutdatedLimits = handler.parser.limits != settings.headLimits
        if handler.client?.remote == "-", loopContext.hasAccessLog {
            handler.client?.recordRemoteAddress()
        }
        guard !handler.isResponding else { return writeStall.reconfigure(settings, after: old) }
        switch phase {
        case .idle: deadline.shift(from: old.idleTimeout, to: settings.idleTimeout)
        case .head: deadline.shift(from: old.headTimeout, to: settings.headTimeout)
        case .body: deadline.shift(from: old.bodyTimeout, to: settings.bodyTimeout)
        case .ending, .lingering, .closed: break
        }
        writeStall.reconfigure(settings, after: old)
    }
}
