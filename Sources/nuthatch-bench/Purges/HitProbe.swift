import NIOCore
import NIOPosix

/// Asks a node for one image over and over, once a millisecond, and times the answers.
struct HitProbe {
    /// Of the node.
    let node: Int
    let originPort: Int
    /// Of the image.
    let path: String

    struct NotServed: Error, CustomStringConvertible {
        let description: String
    }

    func measure(
        for seconds: Int, on group: MultiThreadedEventLoopGroup
    ) async throws -> Latencies {
        let done = group.any().makePromise(of: Latencies.self)
        let request = "GET /v1/image?url=http%3A%2F%2F127.0.0.1%3A\(originPort)\(path) HTTP/1.1\r\n"
        let asker = Asker(request + "Host: node\r\n\r\n", seconds: seconds, done)
        let channel = try await ClientBootstrap(group: group)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(asker)
                }
            }
            .connect(host: "127.0.0.1", port: node).get()
        let latencies = try await done.futureResult.get()
        try await channel.close()
        return latencies
    }

    /// Confined to its channel's loop.
    private final class Asker: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let request: String
        private let endsAt: UInt64
        private let done: EventLoopPromise<Latencies>
        private var latencies = Latencies()
        private var askedAt: UInt64 = 0
        private var received = 0
        private var expected: Int?
        private var isDone = false

        init(_ request: String, seconds: Int, _ done: EventLoopPromise<Latencies>) {
            self.request = request
            self.done = done
            endsAt = nanoseconds() + UInt64(seconds) * 1_000_000_000
        }

        func channelActive(context: ChannelHandlerContext) { ask(context) }

        private func ask(_ context: ChannelHandlerContext) {
            guard nanoseconds() < endsAt else {
                isDone = true
                return done.succeed(latencies)
            }
            (received, expected, askedAt) = (0, nil, nanoseconds())
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data)
            received += bytes.readableBytes
            if expected == nil {
                // Its head is in the first kilobyte.
                let start = bytes.readableBytesView.prefix(1_024)
                let text = String(decoding: start, as: UTF8.self).lowercased()
                guard let end = text.utf8.firstRange(of: "\r\n\r\n".utf8),
                    let field = text.firstRange(of: "content-length: ")
                else { return context.close(promise: nil) }
                let digits = text[field.upperBound...].prefix { $0.isNumber }
                let head = text.utf8.distance(from: text.startIndex, to: end.upperBound)
                expected = Int(digits).map { $0 + head }
            }
            guard received == expected else { return }
            latencies.add(nanoseconds() - askedAt)
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: .milliseconds(1)) {
                let (asker, context) = bound.value
                asker.ask(context)
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            guard !isDone else { return }
            done.fail(NotServed(description: "the image was not served"))
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
