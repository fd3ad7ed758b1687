import HTTPRules
import NIOCore

/// Tells a client for whom there is no door that it should try again, and closes.
final class OverloadHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Why there is none.
    enum Reason {
        case connectionLimit
        /// The client has as many connections as one client may have.
        case clientConnectionLimit
    }

    /// What the request that nobody reads is called.
    private let id: RequestID
    private let reason: Reason

    init(_ id: RequestID, _ reason: Reason) {
        self.id = id
        self.reason = reason
    }

    private static let full = body(of: .overloaded(.connections))
    private static let clientShare = body(of: .tooManyConnections)

    private static func body(of problem: Problem) -> [UInt8] {
        var body: [UInt8] = []
        problem.document.append(to: &body)
        return body
    }

    private var response: ByteBuffer {
        let (line, body) =
            switch reason {
            case .connectionLimit: ("503 Service Unavailable", Self.full)
            case .clientConnectionLimit: ("429 Too Many Requests", Self.clientShare)
            }
        var response = ByteBuffer()
        response.writeString("HTTP/1.1 \(line)\r\nContent-Type: application/problem+json\r\n")
        response.writeString("Content-Length: \(body.count)\r\nRetry-After: 1\r\n")
        response.writeString("X-Request-Id: \(id)\r\n")
        response.writeString("Cache-Control: no-store\r\nConnection: close\r\n\r\n")
        response.writeBytes(body)
        return response
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(response)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
