import Harness
import NIOCore
import NIOPosix

/// A forward proxy that connects to the target of CONNECT and relays bytes both ways.
final class TunnelProxy: Sendable {
    /// The request lines received.
    let asked = LockedBox<[String]>([])
    private let channel: any Channel

    static func listening(on group: any EventLoopGroup) async throws -> TunnelProxy {
        let box = LockedBox<TunnelProxy?>(nil)
        let channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let proxy = box.value else { return }
                    try channel.pipeline.syncOperations.addHandler(Tunnel(proxy))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let proxy = TunnelProxy(channel)
        box.value = proxy
        return proxy
    }

    private init(_ channel: any Channel) {
        self.channel = channel
    }

    var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }

    func stop() async throws {
        try await channel.close()
    }
}

/// One end of a tunnel, whose input goes to the other end.
private final class Tunnel: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The proxy; `nil` at the origin's end.
    private let proxy: TunnelProxy?
    private var other: (any Channel)?
    private var received = ByteBuffer()

    init(_ proxy: TunnelProxy?, to other: (any Channel)? = nil) {
        self.proxy = proxy
        self.other = other
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let other { return other.writeAndFlush(unwrapInboundIn(data), promise: nil) }
        received.writeImmutableBuffer(unwrapInboundIn(data))
        let text = String(buffer: received)
        guard text.hasSuffix("\r\n\r\n"), let proxy else { return }
        let line = String(text.prefix { $0 != "\r\n" })
        proxy.asked.change { $0.append(line) }
        let target = line.split(separator: " ")[1].split(separator: ":")
        let client = context.channel
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Tunnel(nil, to: client))
                }
            }
            .connect(host: String(target[0]), port: Int(target[1]) ?? 0)
            .whenSuccess { channel in
                let (tunnel, context) = bound.value
                tunnel.other = channel
                let response = ByteBuffer(string: "HTTP/1.1 200 Connection established\r\n\r\n")
                context.writeAndFlush(tunnel.wrapOutboundOut(response), promise: nil)
            }
    }

    func channelInactive(context: ChannelHandlerContext) {
        other?.close(promise: nil)
    }
}
