import Ground
import NIOCore
import Telemetry
import Wire

/// Reads the header by which a load balancer says whose connection it passes on (PROXY protocol),
/// and steps aside.
final class ProxyHeaderReader: ChannelInboundHandler, RemovableChannelHandler, ClientConnection {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let hall: Hall
    private let peer: Client
    var client: Client? { peer }
    private var context: ChannelHandlerContext?
    private var input = ByteBuffer()
    private var deadline: Instant
    private var isOver = false

    let side: Door.Side
    var place = 0

    init(on hall: Hall, side: Door.Side, client: Client) {
        self.hall = hall
        self.side = side
        peer = client
        deadline = SystemClock.now() + hall.settings.headTimeout
    }

    /// True if connections from `address` begin with the header.
    static func isNeeded(from address: IPAddress?, _ side: Door.Side, _ hall: Hall) -> Bool {
        let trusted = hall.settings.trustedProxies
        guard side == .data, !trusted.isEmpty, let address else { return false }
        return trusted.contains { $0.contains(address) }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        hall.opened(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        hall.closed(self)
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
            peer.proxied = source?.address
            if hall.hasAccessLog { peer.note() }
            guard source == nil || movePlace() else {
                hall.counters.add(.connectionsRefused)
                return breakOff()
            }
            input.moveReaderIndex(forwardBy: end)
            if input.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(input)) }
            input = ByteBuffer()
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        case .refused:
            hall.counters.add(.requestsMalformed)
            breakOff()
        }
    }

    /// The client that the proxy speaks for has its place; if it has its share of them, that of its
    /// own longest idle connection on this loop.
    private func movePlace() -> Bool {
        if hall.node.movePlace(of: peer) { return true }
        let holder = hall.settings.holder(of: peer.address, on: side)
        guard !peer.hasYielded, hall.makeRoom(side, for: holder, .shareIsTaken) else {
            return false
        }
        hall.node.leave(peer.holder, side)
        peer.holder = holder
        return true
    }

    func ticked(_ now: Instant) {
        guard !isOver, now >= deadline else { return }
        hall.counters.add(.timeoutsHead)
        breakOff()
    }

    var idleSince: Instant? { isOver ? nil : deadline - hall.settings.headTimeout }

    /// What is behind it in the pipeline closes the connection.
    func drain() {}

    func adopt(after old: NodeSettings) {
        deadline.move(from: old.headTimeout, to: hall.settings.headTimeout)
    }

    func close() {
        context?.close(promise: nil)
    }

    func breakOff() {
        isOver = true
        context?.channel.reset()
    }
}
