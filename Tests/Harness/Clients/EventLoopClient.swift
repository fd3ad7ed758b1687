import Glibc
package import NIOCore
import NIOPosix

/// A client on an event loop that sends requests and receives responses in turn on one connection.
///
/// Confined to its loop; only ``eventLoop`` and ``closed`` are used elsewhere.
package final class EventLoopClient: ChannelInboundHandler, @unchecked Sendable {
    package typealias InboundIn = ByteBuffer
    /// Receives the response, however it ended.
    package typealias ResponseHandler = (Response) -> Void

    /// When and how much the client reads.
    package enum ReadMode: Sendable {
        /// Everything as it arrives.
        case all
        /// Nothing until ``startReading()``.
        case nothing
        /// At most `bytesMax` bytes at a time, `milliseconds` apart.
        case slowly(bytesMax: Int, milliseconds: Int)
    }

    private let channel: any Channel
    private var readMode: ReadMode
    /// The response being received.
    private var reader: ResponseReader?
    private var bodyBytesMax = Int.max
    /// Called exactly once per request.
    private var responseHandler: ResponseHandler?

    /// The loop that owns this client.
    package var eventLoop: any EventLoop { channel.eventLoop }
    /// Completes when the connection has ended.
    package var closed: EventLoopFuture<Void> { channel.closeFuture }
    /// True while another request can be sent.
    package var isOpen: Bool { channel.isActive }

    private init(_ channel: any Channel, _ reading: ReadMode) {
        self.channel = channel
        self.readMode = reading
    }

    /// Opens a connection to a server.
    package static func connect(
        to port: Int, host: String = "127.0.0.1", on group: any EventLoopGroup,
        readMode: ReadMode = .all
    ) -> EventLoopFuture<EventLoopClient> {
        var receiveBytesMax = 64 * 1_024
        var bootstrap = ClientBootstrap(group: group)
            .channelOption(.autoRead, value: false)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(.seconds(60))
        // A thousand connections with unlimited buffers use up the kernel's TCP memory, after which
        // it drops packets.
        var bufferBytes: SocketOptionValue = 131_072
        switch readMode {
        case .all: break
        case .nothing: bufferBytes = 4_096
        case .slowly(let bytesMax, _): receiveBytesMax = bytesMax
        }
        bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: bufferBytes)
        return
            bootstrap
            .channelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: receiveBytesMax)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let client = EventLoopClient(channel, readMode)
                    try channel.pipeline.syncOperations.addHandler(client)
                }
            }
            .connect(host: host, port: port)
            .flatMapThrowing { try $0.pipeline.syncOperations.handler(type: EventLoopClient.self) }
    }

    /// Sends a request and reports its response.
    ///
    /// - Parameters:
    ///   - request: The bytes of a request other than HEAD, whose response may have a body.
    ///   - expecting: An image to compare the body with.
    ///   - keepsBody: True to store the body in the response.
    ///   - bodyBytesMax: Body bytes after which the response ends as `abandoned`.
    ///   - answered: Called on the loop, never before this returns.
    package func send(
        _ request: ByteBuffer, expecting: TestImage? = nil, keepsBody: Bool = false,
        bodyBytesMax: Int = .max, _ answered: @escaping ResponseHandler
    ) {
        precondition(self.responseHandler == nil, "one request after the other")
        reader = ResponseReader(
            method: "GET", recorder: keepsBody ? .keeping : .comparing(expecting))
        self.bodyBytesMax = bodyBytesMax
        self.responseHandler = answered
        channel.writeAndFlush(request, promise: nil)
        guard isOpen, bodyBytesMax > 0 else {
            let ending: ResponseEnding = isOpen ? .abandoned : .truncated
            return eventLoop.execute { self.finish(ending) }
        }
    }

    /// Starts to read the bytes left unread.
    package func startReading() {
        readMode = .all
        channel.read()
    }

    /// Ends the connection; a response being received is reported as `abandoned`.
    package func close() {
        finish(.abandoned)
        channel.close(promise: nil)
    }

    package func channelActive(context: ChannelHandlerContext) {
        continueReading()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        reader?.read(&piece)
        guard let reader else { return }
        if reader.isDone { return finish(.complete) }
        if reader.hasHead, reader.bodyByteCount >= bodyBytesMax { finish(.abandoned) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        guard case .slowly(_, let milliseconds) = readMode else { return continueReading() }
        eventLoop.scheduleTask(in: .milliseconds(Int64(milliseconds))) { self.continueReading() }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        finish(.truncated)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let isReset = (error as? IOError)?.errnoCode == ECONNRESET
        finish(isReset ? .reset : .truncated)
        context.close(promise: nil)
    }

    private func continueReading() {
        if case .nothing = readMode { return }
        channel.read()
    }

    private func finish(_ ending: ResponseEnding) {
        guard var reader, let responseHandler else { return }
        (self.reader, self.responseHandler) = (nil, nil)
        reader.end(ending)
        responseHandler(reader.response)
    }
}
