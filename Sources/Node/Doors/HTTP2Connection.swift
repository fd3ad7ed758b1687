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
final class HTTP2Connection: ChannelDuplexHandler, TurnTaker {
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

    let hall: Hall
    private let peer: Client
    var client: Client? { peer }
    /// Operators are spoken to in HTTP/1.1 alone.
    let side = Door.Side.data
    var place = 0
    private(set) lazy var session = HTTP2ServerSession(
        settings: HTTP2Settings(settings), delegate: self)
    var phase = Phase.open
    /// A request must have come by this instant, while none is being answered.
    var deadline = Instant.distantFuture
    var congestion = Congestion()
    private var context: ChannelHandlerContext?
    private let writer = SocketWriter()
    /// Bytes written since the socket last had everything.
    private(set) var queuedBytes = 0
    /// What the bytes not yet in the socket are taken from.
    private var lent: [Resident] = []
    private var isReading = false
    private var isFlushing = false
    private var holdsRead = false
    private var lingeredBytes = 0
    /// The client sends nothing more.
    private var hasInputEnded = false
    /// When the end of the connection was announced.
    var drainingSince: Instant?
    var now = Instant.zero
    /// When a request's head was first seen to be not whole.
    var headSince: Instant?

    var settings: NodeSettings { hall.settings }

    init(on hall: Hall, client: Client) {
        self.hall = hall
        peer = client
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if !peer.isSecure { writer.open(context) }
        hall.opened(self)
        deadline = SystemClock.now() + settings.idleTimeout
        if hall.hasAccessLog { peer.note() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        phase = .closed
        writer.close()
        session.abandon(.cancel)
        lent.removeAll()
        hall.closed(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        guard phase == .open else { return drop(buffer.readableBytes) }
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
        if phase == .open, queuedBytes >= Self.queuedBytesMax || session.isHeld {
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
        congestion.end()
        guard phase == .ending || session.hasOutput || holdsRead else { return }
        // Not here: the flush that led to this call is still under way.
        hall.loop.assumeIsolated().execute { [self] in outputTaken() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        hasInputEnded = true
        if phase == .open, session.openStreamCount > 0 {
            // Nothing can be agreed on any more, windows least of all.
            breakOff()
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
                into: &writer.pieces, bytesMax: Self.queuedBytesMax - queuedBytes, now: now)
            guard bytes > 0 else { break }
            queuedBytes += bytes
        }
        hall.counters.add(.sentBytes, queuedBytes - queuedBefore)
        if writer.flush(context) { socketTookEverything() }
        if queuedBytes > 0, !congestion.isOn {
            congestion.begin(bufferedBytes, SystemClock.now(), settings)
        }
        if session.isOver { beginEnding() }
    }

    private func outputTaken() {
        if phase == .ending { return queuedBytes == 0 ? beginLingering() : () }
        flush()
        goOnReading()
    }

    private func goOnReading() {
        guard holdsRead, queuedBytes < Self.queuedBytesMax, !session.isHeld, let context else {
            return
        }
        holdsRead = false
        context.read()
    }

    func turnCame(now: Instant) {
        guard phase == .open else { return }
        self.now = now
        isReading = true
        _ = session.goOn(now: now)
        isReading = false
        flush()
        goOnReading()
    }

    /// Keeps what was lent until the socket has taken everything.
    func lend(_ resident: Resident) {
        // With nothing on its way nobody would let go of it.
        if queuedBytes > 0 || isFlushing { lent.append(resident) }
    }

    var bufferedBytes: Int { context?.channel.queuedBytes ?? queuedBytes }

    // MARK: The end

    /// How long a client may take to hear that the connection ends.
    static let farewell = Interval.seconds(1)

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
        if holdsRead { context.read() }
    }

    private func drop(_ bytes: Int) {
        lingeredBytes += bytes
        if lingeredBytes > settings.lingerBytesMax { close() }
    }

    func close() {
        guard phase != .closed, let context else { return }
        phase = .closed
        context.close(promise: nil)
    }

    func breakOff() {
        guard phase != .closed, let context else { return }
        phase = .closed
        peer.isBrokenOff = true
        context.channel.reset()
    }
}
