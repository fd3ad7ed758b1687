import HTTPRules
import NIOCore

/// Tells a client for whom there is no door that it should try again, and closes.
final class FullHouse: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Shared by all: it never changes.
    private static let answer: ByteBuffer = {
        let problem = Problem.overloaded(.connections)
        var body: [UInt8] = []
        problem.document.append(to: &body)
        var answer = ByteBuffer()
        answer.writeString(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n")
        answer.writeString("Content-Length: \(body.count)\r\nRetry-After: 1\r\n")
        answer.writeString("Cache-Control: no-store\r\nConnection: close\r\n\r\n")
        answer.writeBytes(body)
        return answer
    }()

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(Self.answer)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
