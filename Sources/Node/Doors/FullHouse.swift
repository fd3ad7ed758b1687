import HTTPRules
import NIOCore

/// Tells a client for whom there is no door that it should try again, and closes.
final class FullHouse: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What the request that nobody reads is called.
    private let id: RequestID

    init(_ id: RequestID) {
        self.id = id
    }

    private static let body: [UInt8] = {
        var body: [UInt8] = []
        Problem.overloaded(.connections).document.append(to: &body)
        return body
    }()

    private var answer: ByteBuffer {
        var answer = ByteBuffer()
        answer.writeString(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n")
        answer.writeString("Content-Length: \(Self.body.count)\r\nRetry-After: 1\r\n")
        answer.writeString("X-Request-Id: \(id)\r\n")
        answer.writeString("Cache-Control: no-store\r\nConnection: close\r\n\r\n")
        answer.writeBytes(Self.body)
        return answer
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(answer)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
