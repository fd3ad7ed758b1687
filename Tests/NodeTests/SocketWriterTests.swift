import Harness
import NIOCore
import NIOPosix
import Platform
import Synchronization
import Testing

@Suite("Writing to a client's socket")
struct SocketWriterTests {
    @Test("Bytes arrive in order, whether the socket accepts a piece whole, in part or not at all")
    func order() async throws {
        let sent = Sent()
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelOption(.socketOption(.so_sndbuf), value: 8 << 10)
            .childChannelOption(
                .writeBufferWaterMark,
                value: ChannelOptions.Types.WriteBufferWaterMark(low: 1, high: 1)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Writer(sent))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let client = try Socket(port: port, receiveBufferBytes: 4 << 10)
        var received = ByteBuffer()
        while case .bytes = client.receive(into: &received, bytesMax: 10_000, .seconds(30)) {}
        try await server.close()
        #expect(Array(received.readableBytesView) == Writer.bytes)
        // Both cases occurred; otherwise nothing was tested.
        #expect(sent.whole.load(ordering: .relaxed) > 0)
        #expect(sent.partly.load(ordering: .relaxed) > 0)
    }
}

/// Counts of flushes by their outcome.
private final class Sent: Sendable {
    let whole = Atomic(0)
    let partly = Atomic(0)
}

/// Writes all of ``bytes`` to a new connection, in pieces of very different sizes with a flush
/// each.
private final class Writer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    static let bytes = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    private static let sizes = [1, 300, 65_536, 2, 1, 1, 4_096, 20_000]

    private let sent: Sent
    private let writer = SocketWriter()

    init(_ sent: Sent) {
        self.sent = sent
    }

    func handlerAdded(context: ChannelHandlerContext) {
        writer.open(context)
    }

    func channelActive(context: ChannelHandlerContext) {
        var (position, turn) = (0, 0)
        while position < Self.bytes.count {
            let end = min(position + Self.sizes[turn % Self.sizes.count], Self.bytes.count)
            let middle = (position + end) / 2
            writer.append(ByteBuffer(bytes: Self.bytes[position..<middle]))
            writer.append(ByteBuffer(bytes: Self.bytes[middle..<end]))
            if writer.flush(context) {
                sent.whole.add(1, ordering: .relaxed)
            } else {
                sent.partly.add(1, ordering: .relaxed)
            }
            (position, turn) = (end, turn + 1)
        }
        context.close(mode: .output, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        writer.close()
    }
}
