import NIOCore
import NIOPosix

/// An origin that has every image of the catalogue.
enum ChurnOrigin {
    static func open(
        _ catalog: ChurnCatalog, host: String, port: Int, on group: MultiThreadedEventLoopGroup
    ) async throws -> any Channel {
        try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Conversation(catalog))
                }
            }
            .bind(host: host, port: port).get()
    }

    private final class Conversation: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let catalog: ChurnCatalog
        private var received = ""

        init(_ catalog: ChurnCatalog) {
            self.catalog = catalog
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += String(buffer: unwrapInboundIn(data))
            while let end = received.firstRange(of: "\r\n\r\n") {
                answer(received[..<end.lowerBound], context)
                received.removeSubrange(..<end.upperBound)
            }
            context.flush()
        }

        private func answer(_ request: Substring, _ context: ChannelHandlerContext) {
            let words = request.prefix { $0 != "\r\n" }.split(separator: " ")
            guard words.count == 3, let image = catalog.image(atPath: words[1]) else {
                return write(context, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            }
            let fields =
                "ETag: \"\(image.place).\(image.generation)\"\r\n"
                + "Cache-Control: max-age=\(image.isShortLived ? 2 : 86_400)\r\n"
            if request.lowercased().contains("\r\nif-none-match:") {
                return write(context, "HTTP/1.1 304 Not Modified\r\n\(fields)\r\n")
            }
            write(
                context,
                "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: \(image.bytes)\r\n"
                    + "\(fields)\r\n")
            var offset = 0
            while offset < image.bytes {
                let part = catalog.bytes(of: image, from: offset, count: image.bytes - offset)
                context.write(wrapOutboundOut(part), promise: nil)
                offset += part.readableBytes
            }
        }

        private func write(_ context: ChannelHandlerContext, _ text: String) {
            context.write(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
