import Ground
import HTTPRules
import NIOCore
import Wire

/// Requests a tunnel from a forward proxy (CONNECT, RFC 9110 §9.3.6), then removes itself from the
/// pipeline.
final class ProxyConnectHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The error that the proxy provides no tunnel.
    struct ConnectRejected: Error {
        let reason: String
    }

    private let target: String
    private let opened: EventLoopPromise<Void>
    private var parser: ResponseParser
    private var received = ByteBuffer()
    private var isDone = false

    /// Requests a tunnel to `target`, given as `host:port`.
    ///
    /// `opened` is completed exactly once; it fails with ``ConnectRejected``.
    init(to target: String, settings: OriginSettings, opened: EventLoopPromise<Void>) {
        self.target = target
        self.opened = opened
        parser = ResponseParser(
            limits: HeadLimits(
                headBytesMax: settings.headBytesMax, fieldsMax: settings.headFieldsMax))
    }

    func channelActive(context: ChannelHandlerContext) {
        let request = "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
        context.read()
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return context.fireChannelRead(data) }
        var buffer = unwrapInboundIn(data)
        received.writeBuffer(&buffer)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard !isDone else { return context.fireChannelReadComplete() }
        let bytes = received
        switch parser.parse(bytes.readableBytesUInt8Span, from: 0, requestIsHead: true) {
        case .incomplete: context.read()
        case .interim(_, let end):
            received.moveReaderIndex(forwardBy: end)
            received.discardReadBytes()
            channelReadComplete(context: context)
        case .head(let head, let end):
            guard (200..<300).contains(head.head.status) else {
                return finish(context, "the proxy responded with status \(head.head.status)")
            }
            // The origin sends nothing before a request; unsolicited bytes are not from it.
            guard end == received.readableBytes else {
                return finish(context, "the proxy sent data after its response to CONNECT")
            }
            finish(context, nil)
        case .refused(let refusal):
            finish(context, "the proxy's response is not valid HTTP/1.1: \(refusal.message)")
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(context, "the proxy closed the connection")
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(context, "the connection to the proxy broke")
        context.fireErrorCaught(error)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        guard !isDone else { return }
        isDone = true
        opened.fail(ConnectRejected(reason: "the connection to the proxy ended"))
    }

    /// Completes ``opened``, once: with a `reason` it fails and the channel is closed, otherwise
    /// this handler is removed.
    private func finish(_ context: ChannelHandlerContext, _ reason: String?) {
        guard !isDone else { return }
        isDone = true
        if let reason {
            opened.fail(ConnectRejected(reason: reason))
            context.close(promise: nil)
        } else {
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            opened.succeed(())
        }
    }
}
