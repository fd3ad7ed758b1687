import NIOCore
import NIOPosix
import Synchronization

/// Answers every request with the same image, until it is stopped.
final class StormOrigin: Sendable {
    private let channel: any Channel
    private let clients: Clients

    /// The image: a GIF of 10 KB, most of it a comment.
    static let image: [UInt8] = {
        let head: [UInt8] = [
            0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0xFF, 0xFF, 0, 0, 0,
        ]
        let tail: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B]
        let block: [UInt8] = [255] + Array(repeating: 0x20, count: 255)
        let blocks: [UInt8] = (1...40).flatMap { _ in block }
        let comment: [UInt8] = [0x21, 0xFE] + blocks + [0]
        return head + comment + tail
    }()

    static func listening(on group: any EventLoopGroup) async throws -> StormOrigin {
        let clients = Clients()
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                clients.add(channel)
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answerer())
                }
            }
        return StormOrigin(
            try await bootstrap.bind(host: "127.0.0.1", port: 0).get(), clients)
    }

    private init(_ channel: any Channel, _ clients: Clients) {
        self.channel = channel
        self.clients = clients
    }

    var port: Int { channel.localAddress?.port ?? 0 }

    func stop() async throws {
        try await channel.close()
        for client in clients.all { try? await client.close() }
    }
}

/// The connections that an origin has accepted.
private final class Clients: Sendable {
    private let channels = Mutex<[any Channel]>([])

    var all: [any Channel] { channels.withLock { $0 } }

    func add(_ channel: any Channel) {
        channels.withLock { $0.append(channel) }
    }
}

/// One connection of the origin; a request ends with its empty line.
private final class Answerer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var received = ByteBuffer()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        received.writeBuffer(&buffer)
        guard received.readableBytesView.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return }
        received.clear()
        var answer = ByteBuffer()
        answer.writeString(
            "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nCache-Control: max-age=86400\r\n"
                + "Content-Length: \(StormOrigin.image.count)\r\n\r\n")
        answer.writeBytes(StormOrigin.image)
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
