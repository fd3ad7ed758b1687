import Certificates
import Harness
import NIOCore
import NIOPosix
import Wire

/// An HTTP/2 origin over TLS on loopback that handles each request as the test says.
final class StreamOrigin: Sendable {
    /// Handles a request's head or its end, on the origin's loop.
    typealias Answer = @Sendable (StreamServer, HTTP2Stream, _ head: String) -> Void

    struct Log: Sendable {
        var connections = 0
        var open = 0
        var requests: [String] = []
        var bodies: [String] = []
        /// The error codes of streams that were reset.
        var resets: [HTTP2ErrorCode] = []
        var resumed = 0
    }

    let log = LockedBox(Log())
    let servers = LockedBox<[NIOLoopBound<StreamServer>]>([])
    private let channel: any Channel

    static func listening(
        on group: any EventLoopGroup, _ server: TLSServerContext,
        settings: HTTP2Settings = HTTP2Settings(), _ response: @escaping Answer
    ) async throws -> StreamOrigin {
        let box = LockedBox<StreamOrigin?>(nil)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let origin = box.value else { return }
                    let tls = ServerTLS(server) { parameters, context in
                        if parameters.isResumed { origin.log.change { $0.resumed += 1 } }
                        let server = StreamServer(origin, settings, response)
                        let bound = NIOLoopBound(server, eventLoop: context.eventLoop)
                        origin.servers.change { $0.append(bound) }
                        try? context.pipeline.syncOperations.addHandler(server)
                    }
                    try channel.pipeline.syncOperations.addHandler(tls)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let origin = StreamOrigin(channel)
        box.value = origin
        return origin
    }

    private init(_ channel: any Channel) {
        self.channel = channel
    }

    var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }

    func stop() async throws {
        try await channel.close()
    }

    /// Runs `body` with the server of the nth connection, on its loop.
    func with(_ index: Int = 0, _ body: @escaping @Sendable (StreamServer) -> Void) async throws {
        let bound = servers.value[index]
        try await bound.eventLoop.submit {
            body(bound.value)
            bound.value.flush()
        }.get()
    }

    /// A response with status 200 and a body to every request.
    static func ok(_ body: String = "ok", fields: String = "") -> Answer {
        { server, stream, _ in server.answer(stream, body, fields: fields) }
    }
}

/// One connection of a ``StreamOrigin``.
final class StreamServer: ChannelInboundHandler, HTTP2ServerDelegate {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let origin: StreamOrigin
    private let settings: HTTP2Settings
    private let answerTo: StreamOrigin.Answer
    private(set) lazy var session = HTTP2ServerSession(settings: settings, delegate: self)
    private var context: ChannelHandlerContext?
    private var isInside = false
    private var bodies: [Int32: ByteBuffer] = [:]
    /// True if bytes of requests' bodies are read as they arrive.
    var takesBodies = true

    init(
        _ origin: StreamOrigin, _ settings: HTTP2Settings, _ response: @escaping StreamOrigin.Answer
    ) {
        self.origin = origin
        self.settings = settings
        answerTo = response
    }

    // MARK: Actions

    func answer(_ stream: HTTP2Stream, _ body: String, fields: String = "") {
        head(stream, "content-length: \(body.utf8.count)\r\n" + fields, ends: body.isEmpty)
        session.write(stream, ByteBuffer(string: body))
        session.end(stream)
    }

    func head(_ stream: HTTP2Stream, status: Int = 200, _ fields: String, ends: Bool = false) {
        let text = Array("HTTP/1.1 \(status) x\r\n\(fields)\r\n".utf8)
        session.sendResponse(stream, head: text.span, endsStream: ends)
    }

    /// Writes bytes that bypass the session.
    func raw(_ bytes: [UInt8]) {
        flush()
        context?.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }

    func close() {
        flush()
        context?.close(promise: nil)
    }

    func flush() {
        guard !isInside, let context else { return }
        var output: [ByteBuffer] = []
        while session.hasOutput {
            session.takeOutput(into: &output, bytesMax: 1 << 20, now: bootClock())
            if output.isEmpty { break }
            for buffer in output { context.write(wrapOutboundOut(buffer), promise: nil) }
            output = []
        }
        context.flush()
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        origin.log.change {
            $0.connections += 1
            $0.open += 1
        }
        flush()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        origin.log.change { $0.open -= 1 }
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        isInside = true
        _ = session.receive(buffer.readableBytesUInt8Span, now: bootClock())
        isInside = false
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
    }

    // MARK: Requests

    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        var text = ""
        for index in 0..<head.count { text.unicodeScalars.append(Unicode.Scalar(head[index])) }
        origin.log.change { $0.requests.append(text) }
        answerTo(self, stream, text)
    }

    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool) {}

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        unsafe bodies[stream.id, default: ByteBuffer()].writeBytes(bytes.bytes)
        if takesBodies { session.consume(stream, bytes: bytes.count) }
    }

    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        var text = String(buffer: bodies.removeValue(forKey: stream.id) ?? ByteBuffer())
        for index in 0..<trailers.count {
            text.unicodeScalars.append(Unicode.Scalar(trailers[index]))
        }
        origin.log.change { $0.bodies.append(text) }
    }

    func streamDrained(_ stream: HTTP2Stream) {}

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode) {
        if code != .noError { origin.log.change { $0.resets.append(code) } }
    }
}
