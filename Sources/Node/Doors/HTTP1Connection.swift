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

    let hall: Hall
    let door: Door
    /// Where the hall keeps this connection.
    var place = 0
    var phase = Phase.idle
    /// The client must have sent what ``phase`` waits for by this instant.
    var deadline = Instant.distantFuture
    var congestion = Congestion()
    var context: ChannelHandlerContext?
    /// The parser has limits that are not the hall's any more.
    var hasOldLimits = false
    /// Of the body that is being dropped, or goes to an origin.
    var bodyDecoder = BodyDecoder(.none)
    /// The request whose body is being dropped.
    var pending: PendingRequest?
    /// No request was read yet: it may turn out to be another protocol.
    var isNew = true
    /// Bytes that were read and not yet looked at.
    var input = ByteBuffer()
    /// What the bytes not yet in the socket are taken from.
    var lent: [Resident] = []
    /// What was written and is not on its way to the socket.
    let writer = SocketWriter()
    /// Bytes written since the socket last had everything.
    private(set) var queuedBytes = 0
    var hasUnflushed = false
    /// The client sends nothing more.
    var hasInputEnded = false
    /// A read that the channel asked for and that is held back.
    var holdsRead = false
    /// Bytes of the body that is being dropped.
    var bodyBytes: UInt64 = 0
    var lingeredBytes = 0

    var side: Door.Side { door.side }
    var client: Client? { door.client }
    var settings: NodeSettings { hall.settings }

    init(on hall: Hall, side: Door.Side, client: Client) {
        self.hall = hall
        door = Door(on: hall, side: side, carriage: .http1)
        door.client = client
        lent.reserveCapacity(8)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if client?.isSecure == false { writer.open(context) }
        door.outlet = self
        hall.opened(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if context.channel.isActive, hall.hasAccessLog { door.client?.note() }
    }

    func channelActive(context: ChannelHandlerContext) {
        if hall.hasAccessLog { door.client?.note() }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    /// Comes last, also for a channel that was closed before it was ever active.
    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        door.gone()
        writer.close()
        lent.removeAll()
        hall.closed(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if !hasUnflushed { hall.heads.begin() }
        if phase == .lingering || phase == .ending { return drop(buffer.readableBytes) }
        guard input.readableBytes == 0, !holdsInput else {
            input.writeBuffer(&buffer)
            if !holdsInput { consumeInput() }
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
        if holdsInput && (input.readableBytes >= settings.pipelineBytesMax || door.upload != nil)
            || queuedBytes >= NodeSettings.queuedBytesMax
        {
            holdsRead = true
        } else {
            context.read()
        }
    }

    /// What comes now waits: an answer is in progress, or the origin takes no more of a body.
    private var holdsInput: Bool { door.isAnswering && !door.takesUpload }

    /// The water marks are one byte: writable means that the socket has taken what was flushed.
    ///
    /// Of what was not, the next flush tells.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable, !hasUnflushed else { return }
        socketTookEverything()
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
        if side == .data { hall.counters.add(.sentBytes, buffer.readableBytes) }
        hasUnflushed = true
        writer.append(buffer)
    }

    func forgetQueued() {
        queuedBytes = 0
    }
}

// MARK: - The hall

extension HTTP1Connection {
    /// Looks at the deadlines; called every ``Hall/tick``.
    func ticked(_ now: Instant) {
        if congestion.isOn {
            guard congestion.takesSomething(bufferedBytes, now, settings) else {
                hall.counters.add(.timeoutsSend)
                return breakOff()
            }
        }
        if door.isAnswering {
            door.ticked(now)
            return flush()
        }
        if isUnprovenTooLong(now) { return close() }
        guard now >= deadline else { return }
        switch phase {
        // It is not idle before it has its answer, and sends nothing while nobody reads.
        case .idle where congestion.isOn: return
        case .head where holdsRead, .body where holdsRead: return
        case .idle:
            hall.counters.add(.timeoutsIdle)
            close()
        case .head:
            hall.counters.add(.timeoutsHead)
            refuse(.slow("head", seconds: settings.headTimeout.seconds))
        case .body:
            hall.counters.add(.timeoutsBody)
            refuse(.slow("body", seconds: settings.bodyTimeout.seconds))
        case .lingering: close()
        case .ending, .closed: break
        }
        flush()
    }

    /// Closes as soon as no answer is in progress.
    func drain() {
        door.isDraining = true
        door.closesAfterAnswer = true
        // Such a connection has no end of its own, and is ended as soon as it rests.
        if door.upload?.isSwitched == true { door.awaitUpload(now: SystemClock.now()) }
        if isResting { close() }
    }

    private func isUnprovenTooLong(_ now: Instant) -> Bool {
        guard side == .admin, let client, !client.isProven else { return false }
        return now >= client.openedAt + NodeSettings.proofTimeout
    }

    /// A head of which a part was read is no request yet.
    var idleSince: Instant? {
        guard !door.isAnswering, queuedBytes == 0 else { return nil }
        switch phase {
        case .idle: return deadline - settings.idleTimeout
        case .head: return deadline - settings.headTimeout
        case .lingering: return deadline - settings.lingerTimeout
        case .body, .ending, .closed: return nil
        }
    }

    /// Nothing is in progress in either direction.
    var isResting: Bool {
        phase == .idle && !door.isAnswering && queuedBytes == 0 && input.readableBytes == 0
    }

    /// The hall has other settings now: time limits that run are as if they had run so from their
    /// start, and the next request is read with the new limits.
    ///
    /// A head of which a part was read, and a request whose body is under way, keep the limits they
    /// began with: their bytes are read twice, and must mean the same.
    func adopt(after old: NodeSettings) {
        hasOldLimits = door.parser.limits != settings.headLimits
        if door.client?.remote == "-", hall.hasAccessLog { door.client?.note() }
        guard !door.isAnswering else { return congestion.adopt(settings, after: old) }
        switch phase {
        case .idle: deadline.move(from: old.idleTimeout, to: settings.idleTimeout)
        case .head: deadline.move(from: old.headTimeout, to: settings.headTimeout)
        case .body: deadline.move(from: old.bodyTimeout, to: settings.bodyTimeout)
        case .ending, .lingering, .closed: break
        }
        congestion.adopt(settings, after: old)
    }
}
