import Ground
import NIOCore
import Platform
import Telemetry
import Wire

/// Channel handler that reads a load balancer's PROXY protocol header and then removes itself.
final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let loopContext: EventLoopContext
    private let connectedClient: Client
    var client: Client? { connectedClient }
    private var context: ChannelHandlerContext?
    /// Bytes received so far.
    private var input = ByteBuffer()
    /// Instant by which the header must be complete.
    private var deadline: Instant
    /// True after the header was read or refused.
    private var isOver = false

    let plane: Plane
    var index = 0

    /// Creates a handler that waits for the header; `headTimeout` applies.
    init(on loopContext: EventLoopContext, side: Plane, client: Client) {
        self.loopContext = loopContext
        self.plane = side
        connectedClient = client
        deadline = SystemClock.now() + loopContext.settings.headTimeout
    }

    /// Returns true if connections from `address` begin with the header: those of trusted proxies
    /// to the data port.
    static func isNeeded(
        from address: IPAddress?, _ side: Plane, _ loopContext: EventLoopContext
    ) -> Bool {
        let trusted = loopContext.settings.trustedProxies
        guard side == .data, !trusted.isEmpty, let address else { return false }
        return trusted.contains { $0.contains(address) }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loopContext.connections.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        loopContext.connections.remove(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard !isOver else { return context.fireChannelRead(wrapInboundOut(buffer)) }
        input.writeBuffer(&buffer)
        let bytes = input
        switch ProxyProtocol.read(bytes.readableBytesUInt8Span) {
        case .needsMore: break
        case .source(let source, let end):
            isOver = true
            connectedClient.proxiedAddress = source?.address
            if loopContext.hasAccessLog { connectedClient.recordRemoteAddress() }
            guard source == nil || transferConnection() else {
                loopContext.counters.add(.connectionsRefused)
                return abort()
            }
            input.moveReaderIndex(forwardBy: end)
            if input.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(input)) }
            input = ByteBuffer()
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        case .refused:
            loopContext.counters.add(.requestsMalformed)
            abort()
        }
    }

    /// Moves the slot to the client named by the proxy; returns false if there is none for it.
    ///
    /// If that client has reached its limit, its longest idle connection on this loop is preempted.
    private func transferConnection() -> Bool {
        if loopContext.node.transferConnection(of: connectedClient) { return true }
        let holder = loopContext.settings.limiterKey(of: connectedClient.address, on: plane)
        guard !connectedClient.isPreempted,
            loopContext.preemptIdleConnection(plane, for: holder, .clientLimitReached)
        else {
            return false
        }
        loopContext.node.slots.release(connectedClient.limiterKey, plane)
        connectedClient.limiterKey = holder
        return true
    }

    func ticked(_ now: Instant) {
        guard !isOver, now >= deadline else { return }
        loopContext.counters.add(.timeoutsHead)
        abort()
    }

    /// Start of the wait for the header; `nil` once it was read or refused.
    var idleSince: Instant? { isOver ? nil : deadline - loopContext.settings.headTimeout }

    /// Does nothing: the next handler in the pipeline closes the connection.
    func drain() {}

    func settingsChanged(from old: NodeSettings) {
        deadline.shift(from: old.headTimeout, to: loopContext.settings.headTimeout)
    }

    func close() {
        context?.close(promise: nil)
    }

    func abort() {
        isOver = true
        context?.channel.reset()
    }
}
