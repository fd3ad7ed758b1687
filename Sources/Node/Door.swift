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
        /// The last answer is given, and not all of it is with the socket.
        case ending
        /// The last answer is with the socket; what the client still sends is dropped until it
        /// closes (RFC 9112 §9.6).
        case lingering
        case closed
    }

    let hall: Hall
    let side: Side
    /// Where the hall keeps this door.
    var place = 0
    var phase = Phase.idle
    /// The client must have sent what ``phase`` waits for by this instant.
    var deadline: Instant
    /// While the socket does not take everything: the client must have taken something by this
    /// instant.
    var sendDeadline = Instant.distantFuture
    /// Bytes that waited for the socket when ``sendDeadline`` was set; nil if the socket has taken
    /// everything.
    var congestedBytes: Int?
    var context: ChannelHandlerContext?
    var parser: RequestParser
    /// The parser has limits that are not the hall's any more.
    var hasOldLimits = false
    var bodyDecoder = BodyDecoder(.none)
    /// The request whose body is being dropped.
    var pending: PendingRequest?
    /// The client's address as a trusted proxy gives it.
    var proxied: IPAddress?
    /// A trusted proxy has yet to say whose connection it is.
    var awaitsProxyHeader = false
    /// Of the site that the request is for; nil for none.
    var siteCounters: SiteCounters?
    /// The key that the site was asked for, of a request that memory did not answer.
    var answeredKey: [UInt8] = []
    /// Lines that this answer has beside its own.
    var extraLines: [UInt8] = []
    /// Who asked wants to know how the answer came about, and may.
    var tellsDecision = false
    /// The body of a request to a site, while it goes to the origin.
    var upload: Upload?
    /// The answer in progress, if it is not one that memory gave at once.
    var waiting: Waiting?
    /// Bytes that were read and not yet looked at.
    var input = ByteBuffer()
    /// What the bytes not yet in the socket are taken from.
    var lent: [Resident] = []
    /// Bytes written since the socket last had everything.
    var queuedBytes = 0
    var hasUnflushed = false
    /// The node is stopping.
    var isDraining = false
    /// The client sends nothing more.
    var hasInputEnded = false
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
    var lingeredBytes = 0

    /// How the cache takes part in the answer.
    var part = CachePart.none
    // What the access log will say; `logged` is nil when there is no log or no request in progress.
    var logged: LoggedRequest?
    var answeredStatus: UInt16 = 0
    var answeredBytes: UInt64 = 0
    var remote = "-"

    var settings: NodeSettings { hall.settings }

    init(on hall: Hall, side: Side) {
        self.hall = hall
        self.side = side
        parser = RequestParser(limits: hall.settings.headLimits)
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

    func channelActive(context: ChannelHandlerContext) {
        if hall.hasAccessLog { noteRemote(of: context.channel) }
        awaitsProxyHeader = isFromTrustedProxy(context.channel)
        context.fireChannelActive()
    }

    /// Comes last, also for a channel that was closed before it was ever active.
    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        dropWaiting()
        lent.removeAll()
        if logged != nil { log(isComplete: false) }
        hall.closed(self)
        hall.node.connectionClosed(side)
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
        if holdsInput && (input.readableBytes >= settings.pipelineBytesMax || upload != nil)
            || queuedBytes >= NodeSettings.queuedBytesMax
        {
            holdsRead = true
        } else {
            context.read()
        }
    }

    /// What comes now waits: an answer is in progress, or the origin takes no more of a body.
    private var holdsInput: Bool {
        guard phase == .answering else { return false }
        return upload.map { $0.fetch?.isFull ?? true } ?? true
    }

    /// The water marks are one byte: writable means that the socket has taken everything.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable else { return }
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

    // MARK: The hall

    /// A fetch that this door waits for has something for it.
    func woken(by run: FillRun) {
        guard let waiting, waiting.run === run else { return }
        proceed()
        flush()
    }

    /// Looks at the deadlines; called every ``Hall/tick``.
    func ticked(_ now: Instant) {
        if congestedBytes != nil {
            guard takesSomething(now) else {
                hall.counters.add(.timeoutsSend)
                return breakOff()
            }
        }
        guard now >= deadline else { return }
        switch phase {
        // It is not idle before it has its answer, and sends nothing while nobody reads.
        case .idle where congestedBytes != nil: return
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
        case .answering: waitedLongEnough()
        case .ending, .closed: break
        }
        flush()
    }

    /// Closes as soon as no answer is in progress.
    func drain() {
        isDraining = true
        closesAfterAnswer = true
        if phase == .idle, queuedBytes == 0, input.readableBytes == 0 { close() }
    }

    /// The client sends nothing more; what it has asked for in full it still gets.
    private func inputClosed() {
        hasInputEnded = true
        switch phase {
        case .idle, .head, .body: endInput()
        case .lingering: close()
        // What it was sending will never be whole.
        case .answering where upload != nil && input.readableBytes == 0: breakOff()
        case .answering, .ending, .closed: break
        }
    }

    /// What is left of the input will never be a request.
    func endInput() {
        guard input.readableBytes == 0 || phase != .idle else { return }
        guard phase == .idle || phase == .head || phase == .body else { return }
        input.clear()
        pending = nil
        phase = .idle
        flush()
        if queuedBytes == 0 { close() }
    }
}
