import Ground
import HTTPRules
import NIOCore
import Wire

/// One HTTP/2 connection to an origin (RFC 9113), which carries as many requests of its event loop
/// as the origin allows at a time.
///
/// Invariant: `activeStreams` counts the streams that have a transaction; without any, the
/// connection is idle. The connection is always read: a paused transaction keeps its own stream's
/// window closed, and no other's.
final class OriginHTTP2Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: OriginConnection
    private let now: @Sendable () -> Instant
    private let requestIsSecure: Bool
    private lazy var session = HTTP2ClientSession(settings: settings, delegate: self)
    private let settings: HTTP2Settings
    private var parser: ResponseParser
    private var context: ChannelHandlerContext?
    private var output: [ByteBuffer] = []
    private var activeStreams = 0
    /// How the origin closed its side; `nil` while it is open.
    private var inputCloseReason: InputCloseReason?
    /// The error code of the origin's GOAWAY; `nil` for none or for NO_ERROR.
    private var goAwayError: HTTP2ErrorCode?
    /// True if no further fetch may start on the connection.
    private var isRetired = false
    private var isReading = false
    private var isFlushing = false
    private var lastReadAt: Instant

    /// Maximum number of bytes of frames produced at a time.
    private static let outputBytesMax = 128 << 10

    init(
        _ connection: OriginConnection, settings origin: OriginSettings,
        now: @escaping @Sendable () -> Instant
    ) {
        self.connection = connection
        self.now = now
        requestIsSecure = connection.origin.isSecure
        lastReadAt = now()
        var settings = HTTP2Settings.originDefaults
        settings.concurrentStreamsMax = origin.streamsMax
        settings.headBytesMax = origin.headBytesMax
        settings.fieldsMax = origin.headFieldsMax
        settings.streamWindowBytes = origin.receiveWindowBytes
        self.settings = settings
        // HPACK counts 32 bytes per field line for overhead that the text does not have.
        parser = ResponseParser(
            limits: HeadLimits(
                headBytesMax: origin.headBytesMax + 64, fieldsMax: origin.headFieldsMax + 1))
    }

    /// Maximum size of a response head in bytes.
    var headBytesMax: Int { settings.headBytesMax }

    /// Number of fetches that can start on the connection now.
    var availableStreams: Int {
        isRetired || inputCloseReason != nil ? 0 : session.requestsAvailable
    }

    /// True once the origin's SETTINGS have arrived.
    var hasSettings: Bool { session.hasSettings }

    /// True if, as far as is known, no further fetch can start on the connection.
    var isUnusable: Bool {
        isRetired || inputCloseReason != nil || activeStreams == 0 && availableStreams == 0
    }

    /// Creates a stream for `hop`, which receives its events.
    func makeStream(for hop: OriginTransaction) -> OriginHTTP2Stream {
        activeStreams += 1
        return OriginHTTP2Stream(on: self, for: hop)
    }

    /// Starts the request on a new stream; `nil` if the connection is closed or has no capacity for
    /// it after all.
    func startStream(_ request: OriginFetchRequest, _ owner: OriginHTTP2Stream) -> HTTP2Stream? {
        guard availableStreams > 0, context != nil else { return nil }
        let stream = session.sendRequest(
            head: request.bytes.span, isSecure: requestIsSecure, endsStream: request.body.isEmpty)
        stream?.owner = owner
        return stream
    }

    /// Records that a stream no longer has a transaction; after the last one, the connection
    /// becomes idle, or is closed if it is unusable.
    func streamReleased() {
        activeStreams -= 1
        defer { flush() }
        guard let client = connection.client, activeStreams == 0 else {
            return notifyCapacityChanged()
        }
        if isUnusable { connection.close() } else { client.release(connection) }
        notifyCapacityChanged()
    }

    /// Reports that a request has waited for bytes since `since`.
    ///
    /// The connection is retired if, for at least half of that time, no bytes arrived for any other
    /// request either: it may be dead.
    func responseTimedOut(since: Instant) {
        let now = now()
        if now - lastReadAt >= lastReadAt - since { retire() }
    }

    /// Lets no further fetch start on the connection, and closes it once it carries none.
    private func retire() {
        guard !isRetired else { return }
        isRetired = true
        notifyCapacityChanged()
        if activeStreams == 0 { connection.close() }
    }

    /// Notifies the client of the connection's capacity.
    private func notifyCapacityChanged() {
        connection.client?.streamCapacityChanged(connection)
    }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // The preface is sent with the first request.
        context.read()
        if !context.channel.isActive { closeInput(.reset) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        closeInput(.reset)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard inputCloseReason == nil else { return }
        isReading = true
        lastReadAt = now()
        let buffer = unwrapInboundIn(data)
        _ = session.receive(buffer.readableBytesUInt8Span, now: lastReadAt)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        flush()
        notifyCapacityChanged()
        if inputCloseReason == nil { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable, session.hasOutput else { return }
        // Not here: the flush that caused this call is still in progress.
        context.eventLoop.assumeIsolated().execute { [self] in flush() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let end = event as? InputCloseReason else {
            return context.fireUserInboundEventTriggered(event)
        }
        isReading = false
        self.closeInput(end)
    }

    func channelInactive(context: ChannelHandlerContext) {
        closeInput(.orderly)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        closeInput(.reset)
        context.close(promise: nil)
    }

    /// Produces frames from pending output and writes them.
    ///
    /// Does nothing during a read, which ends with a flush in any case.
    func flush() {
        guard !isReading, !isFlushing, inputCloseReason == nil, let context else { return }
        isFlushing = true
        while session.hasOutput, context.channel.isWritable {
            session.takeOutput(into: &output, bytesMax: Self.outputBytesMax, now: now())
            guard !output.isEmpty else { break }
            for buffer in output { context.write(wrapOutboundOut(buffer), promise: nil) }
            output.removeAll(keepingCapacity: true)
            context.flush()
        }
        isFlushing = false
        guard session.isFinished else { return }
        closeInput(session.failure.map { .http2($0, byOrigin: false) } ?? .orderly)
        connection.close()
    }

    /// Records the end of input, once, and ends every stream with it; `end` yields to an error of
    /// an earlier GOAWAY.
    private func closeInput(_ end: InputCloseReason) {
        guard inputCloseReason == nil else { return }
        inputCloseReason = goAwayError.map { .http2($0, byOrigin: true) } ?? end
        session.transportClosed(.cancel)
        notifyCapacityChanged()
    }
}

// MARK: - Responses

extension OriginHTTP2Handler: HTTP2ClientDelegate {
    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>) {
        owner(of: stream)?.headReceived(head, &parser, linesCount: nil, hasBody: false)
    }

    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool
    ) {
        owner(of: stream)?.headReceived(head, &parser, linesCount: linesCount, hasBody: hasBody)
    }

    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>) {
        owner(of: stream)?.bodyReceived(ByteBuffer(bytes: bytes.copy(0..<bytes.count)))
    }

    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>) {
        owner(of: stream)?.responseEnded(trailers: trailers.copy(0..<trailers.count))
    }

    func streamDrained(_ stream: HTTP2Stream) {
        owner(of: stream)?.drained()
    }

    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool) {
        owner(of: stream)?.closed(code, isRefused: isSafeToRetry, with: inputCloseReason)
    }

    /// Lets no further fetch start on the connection; an error code becomes the reason of its end.
    func goAwayReceived(code: HTTP2ErrorCode) {
        if code != .noError { goAwayError = code }
        retire()
    }

    func settingsReceived() {}

    private func owner(of stream: HTTP2Stream) -> OriginHTTP2Stream? {
        stream.owner as? OriginHTTP2Stream
    }
}

// MARK: - Stream operations

extension OriginHTTP2Handler {
    /// Queues a part of a request body, with the end of the stream if it contains it, and writes
    /// what is possible.
    func write(_ stream: HTTP2Stream, _ body: OutgoingBodyPart) {
        for piece in body.pieces { session.write(stream, piece) }
        if let end = body.end {
            session.end(stream, trailers: end.isEmpty ? nil : end.bytes)
        }
        flush()
    }

    /// Reports that bytes of a response body were consumed, so that the origin may send as many
    /// more.
    func consume(_ stream: HTTP2Stream, bytes: Int) {
        session.consume(stream, bytes: bytes)
    }

    /// Resets a stream with CANCEL.
    func reset(_ stream: HTTP2Stream) {
        session.reset(stream, .cancel)
    }
}
