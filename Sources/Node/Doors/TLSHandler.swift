import Ground
import Logging
import NIOCore
import Telemetry
import Wire

/// The encrypted side of a client's connection: does the handshake, then puts the connection behind
/// itself that speaks what was agreed on, and carries its bytes.
///
/// What is written is encrypted when it is flushed, so that small pieces share a record.
final class TLSHandler: ChannelDuplexHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case handshaking
        case open
        /// The client sends nothing more.
        case inputEnded
        case closed
    }

    private let hall: Hall
    private let peer: Client
    var client: Client? { peer }
    private let session: TLSSession
    private var phase = Phase.handshaking
    /// The handshake must be done by this instant.
    private var deadline: Instant
    private var context: ChannelHandlerContext?
    /// Plaintext that waits for the next flush.
    private var pending: [ByteBuffer] = []
    private let writer = SocketWriter()
    private var isRegistered = false

    let side: Door.Side
    var place = 0

    init(_ tls: TLSServerContext, on hall: Hall, side: Door.Side, client: Client) {
        self.hall = hall
        self.side = side
        peer = client
        session = TLSSession(tls, buffers: hall.tlsBuffers)
        deadline = SystemClock.now() + hall.settings.handshakeTimeout
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        guard hall.handshakes < hall.settings.handshakesMax else {
            hall.counters.add(.handshakesRefused)
            phase = .closed
            return context.channel.reset()
        }
        hall.handshakes += 1
        isRegistered = true
        writer.open(context)
        hall.opened(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        writer.close()
        if phase == .handshaking { hall.counters.add(.handshakesFailed) }
        phase = .closed
        handshakeOver()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase == .handshaking || phase == .open else { return }
        session.receive(unwrapInboundIn(data))
        while true {
            switch session.next() {
            case .needsMore: return sendOutput(context)
            case .established(let parameters): established(parameters, context)
            case .data(let plaintext): context.fireChannelRead(wrapInboundOut(plaintext))
            case .closed:
                sendOutput(context)
                return endInput(context)
            case .failed(let failure): return failed(failure, context)
            }
            guard phase == .handshaking || phase == .open else { return }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        switch phase {
        case .handshaking:
            hall.counters.add(.handshakesFailed)
            phase = .closed
            context.close(promise: nil)
        // A request says itself where it ends, so that nothing is lost without close_notify, which
        // many clients do not send.
        case .open: endInput(context)
        case .inputEnded, .closed: break
        }
    }

    private func endInput(_ context: ChannelHandlerContext) {
        phase = .inputEnded
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        precondition(promise == nil, "nobody behind TLS asks what became of a write")
        pending.append(unwrapOutboundIn(data))
    }

    func flush(context: ChannelHandlerContext) {
        encrypt(context)
        send(context)
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        // After a break nothing may look like an orderly end.
        if mode != .input, !peer.isBrokenOff {
            encrypt(context)
            session.close()
            sendOutput(context)
        }
        context.close(mode: mode, promise: promise)
    }

    private func encrypt(_ context: ChannelHandlerContext) {
        guard !pending.isEmpty else { return }
        session.write(pending, now: SystemClock.now())
        pending.removeAll(keepingCapacity: true)
        guard let output = session.takeOutput() else { return }
        writer.append(output)
    }

    /// Hands what is encrypted to the socket, and tells who wrote it if that has taken it.
    private func send(_ context: ChannelHandlerContext) {
        guard writer.flush(context) else { return }
        context.fireChannelWritabilityChanged()
    }

    /// What the session itself has to say.
    private func sendOutput(_ context: ChannelHandlerContext) {
        encrypt(context)
        if let output = session.takeOutput() { writer.append(output) }
        send(context)
    }

    // MARK: The handshake

    private func established(_ parameters: TLSParameters, _ context: ChannelHandlerContext) {
        phase = .open
        handshakeOver()
        peer.isSecure = true
        hall.counters.add(parameters.isResumed ? .handshakesResumed : .handshakes)
        sendOutput(context)
        let pipeline = context.pipeline.syncOperations
        do {
            if parameters.applicationProtocol == .http2 {
                try pipeline.addHandler(
                    HTTP2Connection(on: hall, client: peer), position: .after(self))
            } else {
                try pipeline.addHandler(
                    HTTP1Connection(on: hall, side: side, client: peer), position: .after(self))
            }
        } catch {
            phase = .closed
            context.close(promise: nil)
        }
    }

    private func failed(_ failure: TLSFailure, _ context: ChannelHandlerContext) {
        if phase == .handshaking {
            hall.counters.add(.handshakesFailed)
            hall.node.logger.debug(
                "TLS handshake failed",
                metadata: [
                    "client": "\(peer.address.map { "\($0)" } ?? "-")",
                    "why": "\(failure.sentence)",
                ])
        }
        phase = .closed
        sendOutput(context)
        context.close(promise: nil)
    }

    private func handshakeOver() {
        guard isRegistered else { return }
        isRegistered = false
        hall.handshakes -= 1
        hall.closed(self)
    }

    // MARK: The hall, while there is no other connection that it could deal with

    func ticked(_ now: Instant) {
        guard now >= deadline else { return }
        hall.counters.add(.timeoutsHandshake)
        close()
    }

    var idleSince: Instant? {
        phase == .handshaking ? deadline - hall.settings.handshakeTimeout : nil
    }

    func drain() {
        close()
    }

    func adopt(after old: NodeSettings) {
        deadline.move(from: old.handshakeTimeout, to: hall.settings.handshakeTimeout)
    }

    func close() {
        guard phase == .handshaking, let context else { return }
        phase = .closed
        context.close(promise: nil)
    }

    func breakOff() {
        guard phase == .handshaking, let context else { return }
        phase = .closed
        peer.isBrokenOff = true
        context.channel.reset()
    }
}
