import Ground
import Logging
import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

/// The TLS side of a client connection: performs the handshake, then adds the connection handler
/// for the negotiated protocol behind itself and carries its bytes.
///
/// Writes are encrypted at the flush, so that small pieces share a record.
final class TLSHandler: ChannelDuplexHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The state of the session.
    private enum Phase {
        case handshaking
        case open
        /// The client has sent close_notify or closed its sending side.
        case inputEnded
        case closed
    }

    private let loopContext: EventLoopContext
    private let connectedClient: Client
    var client: Client? { connectedClient }
    private let session: TLSSession
    private var phase = Phase.handshaking
    /// Instant by which the handshake must be complete.
    private var deadline: Instant
    private var context: ChannelHandlerContext?
    /// Plaintext that was not yet flushed.
    private var pendingPlaintext: [ByteBuffer] = []
    private let writer = SocketWriter()
    /// True while the context counts this handshake and manages the connection.
    private var isRegistered = false

    let plane: Plane
    var index = 0

    /// Creates a handler that waits for the handshake; `handshakeTimeout` applies.
    init(
        _ tls: TLSServerContext, on loopContext: EventLoopContext, side: Plane,
        client: Client
    ) {
        self.loopContext = loopContext
        self.plane = side
        connectedClient = client
        session = TLSSession(tls, buffers: loopContext.tlsBuffers)
        deadline = SystemClock.now() + loopContext.settings.handshakeTimeout
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        guard loopContext.handshakes < loopContext.settings.handshakesMax else {
            loopContext.counters.add(.handshakesRefused)
            phase = .closed
            return context.channel.reset()
        }
        loopContext.handshakes += 1
        isRegistered = true
        writer.open(context)
        loopContext.connections.add(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        writer.close()
        if phase == .handshaking { loopContext.counters.add(.handshakesFailed) }
        phase = .closed
        handshakeEnded()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase == .handshaking || phase == .open else { return }
        session.receive(unwrapInboundIn(data))
        while true {
            switch session.next() {
            case .needsMore: return sendOutput(context)
            case .established(let parameters): handshakeCompleted(parameters, context)
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
            loopContext.counters.add(.handshakesFailed)
            phase = .closed
            context.close(promise: nil)
        // An HTTP request marks its own end, so nothing is lost without close_notify, which many
        // clients omit.
        case .open: endInput(context)
        case .inputEnded, .closed: break
        }
    }

    /// Reports the end of the input to the connection.
    private func endInput(_ context: ChannelHandlerContext) {
        phase = .inputEnded
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        precondition(promise == nil, "nobody behind TLS asks what became of a write")
        pendingPlaintext.append(unwrapOutboundIn(data))
    }

    /// Encrypts everything written since the last flush, and sends it.
    func flush(context: ChannelHandlerContext) {
        encrypt(context)
        send(context)
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        // After a reset, no close_notify may suggest an orderly end.
        if mode != .input, !connectedClient.isAborted {
            encrypt(context)
            session.close()
            sendOutput(context)
        }
        context.close(mode: mode, promise: promise)
    }

    /// Encrypts the pending plaintext.
    private func encrypt(_ context: ChannelHandlerContext) {
        guard !pendingPlaintext.isEmpty else { return }
        session.write(pendingPlaintext, now: SystemClock.now())
        pendingPlaintext.removeAll(keepingCapacity: true)
        guard let output = session.takeOutput() else { return }
        writer.append(output)
    }

    /// Sends the encrypted bytes; reports writability to the next handler if the socket has
    /// accepted them.
    private func send(_ context: ChannelHandlerContext) {
        guard writer.flush(context) else { return }
        context.fireChannelWritabilityChanged()
    }

    /// Sends the output of the session itself, such as handshake messages and alerts.
    private func sendOutput(_ context: ChannelHandlerContext) {
        encrypt(context)
        if let output = session.takeOutput() { writer.append(output) }
        send(context)
    }

    // MARK: The handshake

    /// Ends and counts the handshake, and adds the connection handler for the negotiated protocol.
    private func handshakeCompleted(_ parameters: TLSParameters, _ context: ChannelHandlerContext) {
        phase = .open
        handshakeEnded()
        connectedClient.isSecure = true
        loopContext.counters.add(parameters.isResumed ? .handshakesResumed : .handshakes)
        sendOutput(context)
        let pipeline = context.pipeline.syncOperations
        do {
            if parameters.applicationProtocol == .http2 {
                try pipeline.addHandler(
                    HTTP2Connection(on: loopContext, client: connectedClient),
                    position: .after(self))
            } else {
                try pipeline.addHandler(
                    HTTP1Connection(on: loopContext, plane: plane, client: connectedClient),
                    position: .after(self))
            }
        } catch {
            phase = .closed
            context.close(promise: nil)
        }
    }

    /// Sends the alert of the failure and closes.
    private func failed(_ failure: TLSFailure, _ context: ChannelHandlerContext) {
        if phase == .handshaking {
            loopContext.counters.add(.handshakesFailed)
            loopContext.node.logger.debug(
                "TLS handshake failed",
                metadata: [
                    "client": "\(connectedClient.address.map { "\($0)" } ?? "-")",
                    "why": "\(failure.message)",
                ])
        }
        phase = .closed
        sendOutput(context)
        context.close(promise: nil)
    }

    /// Releases the handshake slot and the context's reference, once.
    private func handshakeEnded() {
        guard isRegistered else { return }
        isRegistered = false
        loopContext.handshakes -= 1
        loopContext.connections.remove(self)
    }

    // MARK: Management by the context until the handshake is complete

    func ticked(_ now: Instant) {
        guard now >= deadline else { return }
        loopContext.counters.add(.timeoutsHandshake)
        close()
    }

    /// Start of the handshake; `nil` once it is complete.
    var idleSince: Instant? {
        phase == .handshaking ? deadline - loopContext.settings.handshakeTimeout : nil
    }

    func drain() {
        close()
    }

    func settingsChanged(from old: NodeSettings) {
        deadline.shift(from: old.handshakeTimeout, to: loopContext.settings.handshakeTimeout)
    }

    func close() {
        guard phase == .handshaking, let context else { return }
        phase = .closed
        context.close(promise: nil)
    }

    func abort() {
        guard phase == .handshaking, let context else { return }
        phase = .closed
        connectedClient.isAborted = true
        context.channel.reset()
    }
}

/// The keys that seal TLS session tickets, shared by all certificates, so that clients resume
/// sessions after certificates were reloaded.
final class TicketKeyStore: Sendable {
    private let keys: Mutex<TicketKeys>

    /// Creates new random keys.
    init() {
        keys = Mutex(TicketKeys(now: SystemClock.now(), entropy: Self.randomBytes()))
    }

    /// Sets the current keys in the TLS contexts of `settings`.
    func installKeys(in settings: NodeSettings, now: Instant) {
        let current = keys.withLock { $0 }
        settings.tls?.setTicketKeys(current)
        settings.adminTLS?.setTicketKeys(current)
    }

    /// Rotates the keys if that is due, and installs them in `settings`.
    func rotateIfDue(_ settings: NodeSettings, now: Instant) {
        let isDue = keys.withLock { keys in
            guard keys.isRotationDue(now: now) else { return false }
            keys.rotate(now: now, entropy: Self.randomBytes())
            return true
        }
        if isDue { installKeys(in: settings, now: now) }
    }

    /// Returns entropy for ticket keys, from the system's generator.
    private static func randomBytes() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<TicketKeys.entropyBytes).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
    }
}
