import Glibc
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// One client's connection, HTTP/1.1 or 1.0: reads requests, answers them in order.
///
/// A hit is answered inside the read that brought it, without an allocation. Everything slower
/// becomes a ``Waiting``, during which no further request is looked at: its bytes wait in `input`,
/// and past a limit in the client's own socket.
///
/// Confined to its event loop.
final class Door: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Which requests a door answers.
    enum Side {
        case data
        case admin
    }

    /// What the connection is doing.
    enum Phase {
        /// Between two requests: nothing of the next one was read.
        case idle
        /// Part of a request's head was read.
        case head
        /// A body nobody asked for is read and dropped; the request is answered after it.
        case body
        /// An answer waits for something, or its body for the client.
        case answering
        /// The last answer is given; what the client still sends is dropped until it closes (RFC
        /// 9112 §9.6).
        case lingering
        case closed
    }

    let hall: Hall
    let side: Side
    /// Where the hall keeps this door.
    var place = 0
    var phase = Phase.idle
    /// The connection is broken off at this instant, unless something happens before.
    var deadline: Instant
    var context: ChannelHandlerContext?
    var parser: RequestParser
    var bodyDecoder = BodyDecoder(.none)
    /// The request whose body is being dropped.
    var pending: PendingRequest?
    /// The answer in progress, if it is not one that memory gave at once.
    var waiting: Waiting?
    /// Bytes that were read and not yet looked at.
    var input = ByteBuffer()
    /// What the bytes not yet in the socket are taken from.
    var lent: [Resident] = []
    /// Bytes written since the socket last had everything.
    var queuedBytes = 0
    var hasUnflushed = false
    var isDraining = false
    /// The client asked for, or we decided on, this being the last answer.
    var closesAfterAnswer = false
    /// A read that the channel asked for and that is held back.
    var holdsRead = false
    /// Where the request's head lies in the bytes that are being looked at.
    var headRange = 0..<0
    var isHeadRequest = false
    /// Bytes of the body that is being dropped.
    var bodyBytes: UInt64 = 0
    /// Room that is kept from one use to the next.
    var slices: [ByteBuffer] = []
    var scratch: [UInt8] = []
    private var lingeredBytes = 0

    // What the access log will say; `logged` is nil when there is no log or no request in progress.
    var logged: LoggedRequest?
    var answeredStatus: UInt16 = 0
    var answeredBytes: UInt64 = 0
    var outcome: StaticString = "-"

    var settings: NodeSettings { hall.settings }

    init(on hall: Hall, side: Side) {
        self.hall = hall
        self.side = side
        parser = RequestParser(limits: hall.node.settings.headLimits)
        deadline = .distantFuture
        lent.reserveCapacity(8)
        slices.reserveCapacity(16)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        hall.opened(self)
        deadline = SystemClock.now() + settings.idleTimeout
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        phase = .closed
        dropWaiting()
        lent.removeAll()
        if logged != nil { log(isComplete: false) }
        hall.closed(self)
        hall.node.connectionClosed()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if !hasUnflushed { hall.heads.begin() }
        if phase == .lingering { return drop(buffer.readableBytes) }
        guard input.readableBytes == 0, phase != .answering else {
            input.writeBuffer(&buffer)
            if phase != .answering { consumeInput() }
            return
        }
        let used = consume(buffer.readableBytesUInt8Span)
        guard used < buffer.readableBytes, phase != .closed, phase != .lingering else { return }
        buffer.moveReaderIndex(forwardBy: used)
        input.clear()
        input.writeBuffer(&buffer)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
    }

    /// Reading is held back while a slow client has enough to do with what it has asked for.
    func read(context: ChannelHandlerContext) {
        if phase == .answering && input.readableBytes >= settings.pipelineBytesMax
            || queuedBytes >= settings.queuedBytesMax
        {
            holdsRead = true
        } else {
            context.read()
        }
    }

    /// The water marks are one byte: writable means that the socket has taken everything.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable else { return }
        socketTookEverything()
    }

    private func socketTookEverything() {
        lent.removeAll(keepingCapacity: true)
        queuedBytes = 0
        if isDraining, phase == .idle, input.readableBytes == 0 { return endSoon() }
        guard phase == .answering || holdsRead || input.readableBytes > 0 else { return }
        // Not here: the flush that led to this call is still under way.
        hall.loop.assumeIsolated().execute { [self] in outputTaken() }
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

    // MARK: The hall

    /// A fetch that this door waits for has something for it.
    func woken(by run: FillRun) {
        guard let waiting, waiting.run === run else { return }
        proceed()
        flush()
    }

    /// Looks at the deadline; called every ``Hall/tick``.
    func ticked(_ now: Instant) {
        guard now >= deadline else { return }
        switch phase {
        case .idle:
            hall.counters.add(.timeoutsIdle)
            close()
        case .head:
            hall.counters.add(.timeoutsHead)
            refuse(.slow("head", seconds: settings.headTimeout.seconds))
        case .body:
            hall.counters.add(.timeoutsBody)
            refuse(.slow("body", seconds: settings.bodyTimeout.seconds))
        case .answering:
            // Without output under way it is the fetch that is slow, and the fetch has limits of
            // its own.
            guard queuedBytes > 0 else { return }
            hall.counters.add(.timeoutsSend)
            breakOff()
        case .lingering: close()
        case .closed: break
        }
        flush()
    }

    /// Closes as soon as no answer is in progress.
    func drain() {
        isDraining = true
        closesAfterAnswer = true
        if phase == .idle { close() }
    }

    /// The client sends nothing more; what it has asked for in full it still gets.
    private func inputClosed() {
        closesAfterAnswer = true
        isDraining = true
        switch phase {
        case .idle where queuedBytes > 0 || input.readableBytes > 0: break
        case .idle, .head, .body, .lingering: close()
        case .answering, .closed: break
        }
    }

    // MARK: Output

    /// Hands everything written to the socket.
    func flush() {
        guard hasUnflushed, let context else { return }
        hasUnflushed = false
        context.flush()
        // One byte alone does not pass the mark, which cannot be lower.
        if queuedBytes == 1 { socketTookEverything() }
    }

    @inline(__always)
    func write(_ buffer: ByteBuffer) {
        guard let context else { return }
        queuedBytes += buffer.readableBytes
        hasUnflushed = true
        context.write(wrapOutboundOut(buffer), promise: nil)
    }

    func close() {
        guard phase != .closed, let context else { return }
        flush()
        phase = .closed
        dropWaiting()
        context.close(promise: nil)
    }

    /// Ends the connection with a reset, so that no client can take what it has for a whole answer.
    func breakOff() {
        guard phase != .closed, let context else { return }
        phase = .closed
        dropWaiting()
        if let socket = context.channel as? any SocketOptionProvider {
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        context.close(promise: nil)
    }

    /// Says that nothing more will come, and drops what still arrives until the client has closed.
    func beginLingering() {
        guard let context else { return }
        flush()
        phase = .lingering
        input.clear()
        deadline = SystemClock.now() + settings.lingerTimeout
        context.close(mode: .output, promise: nil)
        resumeReading()
    }

    private func drop(_ bytes: Int) {
        lingeredBytes += bytes
        if lingeredBytes > settings.lingerBytesMax { close() }
    }

    func resumeReading() {
        guard holdsRead, let context else { return }
        holdsRead = false
        context.read()
    }

    /// The last answer is with the socket; not at once, because its flush may be under way.
    private func endSoon() {
        hall.loop.assumeIsolated().execute { [self] in
            if phase == .idle { close() }
        }
    }

    private func outputTaken() {
        switch phase {
        case .answering: proceed()
        case .idle, .head, .body: consumeInput()
        case .lingering, .closed: return
        }
        flush()
        if queuedBytes < settings.queuedBytesMax { resumeReading() }
    }

    func dropWaiting() {
        guard let waiting else { return }
        self.waiting = nil
        dropRun(waiting)
    }
}
