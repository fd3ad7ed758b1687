import NIOCore
import NIOPosix

/// One connection to the node, for one request at a time; used on its loop only.
final class StormClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What became of a request: the status, 0 if the connection ended before the answer.
    typealias Done = (_ status: Int, _ client: StormClient) -> Void

    private var context: ChannelHandlerContext?
    private var head = ByteBuffer()
    private var bodyLeft = 0
    private var status = 0
    private var done: Done?

    var isOpen: Bool { context?.channel.isActive == true }

    func ask(_ path: String, _ done: @escaping Done) {
        self.done = done
        guard let context, context.channel.isActive else { return end(0) }
        let request = ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: bench\r\n\r\n")
        context.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    func close() {
        context?.close(promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        end(0)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if bodyLeft == 0 {
            head.writeBuffer(&buffer)
            guard let size = headSize() else { return }
            read(head: head.readString(length: size) ?? "")
            buffer = head
            head = ByteBuffer()
        }
        bodyLeft -= buffer.readableBytes
        if bodyLeft <= 0 {
            bodyLeft = 0
            end(status)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func headSize() -> Int? {
        let view = head.readableBytesView
        var index = view.startIndex
        while let carriage = view[index...].firstIndex(of: 0x0D) {
            if view[carriage...].starts(with: [0x0D, 0x0A, 0x0D, 0x0A]) {
                return carriage - view.startIndex + 4
            }
            index = carriage + 1
        }
        return nil
    }

    private func read(head: String) {
        let lines = head.split(separator: "\r\n")
        status = lines.first.flatMap { Int($0.dropFirst(9).prefix(3)) } ?? 0
        for line in lines where line.lowercased().hasPrefix("content-length:") {
            bodyLeft = Int(line.dropFirst(15).drop { $0 == " " }) ?? 0
        }
    }

    private func end(_ status: Int) {
        let done = done
        self.done = nil
        done?(status, self)
    }
}

extension StormClient {
    /// A new connection to the node.
    static func connect(
        to port: Int, on loop: any EventLoop
    ) -> EventLoopFuture<NIOLoopBound<StormClient>> {
        let client = NIOLoopBound(StormClient(), eventLoop: loop)
        return ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(client.value)
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .map { _ in client }
    }
}
