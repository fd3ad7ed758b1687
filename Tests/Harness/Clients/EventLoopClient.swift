import Glibc
package import NIOCore
import NIOPosix

/// A client on an event loop: requests out, responses in, one after the other over one connection.
///
/// Owned by its loop; nothing but ``eventLoop`` and ``closed`` is used elsewhere.
package final class EventLoopClient: ChannelInboundHandler, @unchecked Sendable {
    package typealias InboundIn = ByteBuffer
    /// Takes the response, however it ended.
    package typealias ResponseHandler = (Response) -> Void

    /// When the client reads, and how much.
    package enum ReadMode: Sendable {
        /// Everything as it comes.
        case all
        /// Nothing until ``startReading()``.
        case nothing
        /// At most so many bytes each time, so many milliseconds apart.
        case slowly(bytesMax: Int, milliseconds: Int)
    }

    private let channel: any Channel
    private var readMode: ReadMode
    /// The response under way.
    private var reader: ResponseReader?
    private var bodyBytesMax = Int.max
    /// Called once for each request, and never again.
    private var responseHandler: ResponseHandler?

    /// The loop that owns this client.
    package var eventLoop: any EventLoop { channel.eventLoop }
    /// Succeeds when the connection has ended.
    package var closed: EventLoopFuture<Void> { channel.closeFuture }
    /// True as long as another request can be sent.
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
        // A thousand connections whose buffers grow as they like take all the memory that the
        // kernel has for TCP: it drops what comes then.
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

    /// Sends a request, and tells its response.
    ///
    /// - Parameters:
    ///   - request: The bytes of a request that is answered with a body if there is one: not HEAD.
    ///   - expecting: An image to compare the body with.
    ///   - keepsBody: True to have the body in the response.
    ///   - bodyBytesMax: End as `abandoned` once that much of the body has come.
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

    /// Begins to read what was left unread.
    package func startReading() {
        readMode = .all
        channel.read()
    }

    /// Ends the connection; a response under way is told as `abandoned`.
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
