import NIOCore
import NIOPosix

/// One connection of the scripted origin, which reads requests and sends one response at a time.
///
/// Confined to its event loop.
final class ScriptedOriginConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let channel: any Channel
    private let originState: ScriptedOriginState
    private let number: Int
    private let requestsMax: Int?
    private var received = ByteBuffer()
    /// The remaining steps of the current response; `nil` between responses.
    private var steps: ArraySlice<OriginResponseStep>?
    /// True while a pause holds the response.
    private var isPaused = false
    /// True once the connection is about to end: nothing more is read or written.
    private var isEnding = false
    /// True while `proceed` runs further up the stack.
    private var isProceeding = false
    private var requestCount = 0
    /// The request whose body is being read; nil between requests.
    private var pending: (request: OriginRequest, body: ResponseReader)?

    private static let pieceBytesMax = 64 * 1_024
    private static let headBytesMax = 256 * 1_024

    init(channel: any Channel, originState: ScriptedOriginState, number: Int, requestsMax: Int?) {
        self.channel = channel
        self.originState = originState
        self.number = number
        self.requestsMax = requestsMax
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received.writeImmutableBuffer(unwrapInboundIn(data))
        respondNext()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        proceed()
    }

    func channelInactive(context: ChannelHandlerContext) {
        isEnding = true
        originState.connectionClosed(number)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isEnding = true
        context.close(promise: nil)
    }

    /// Starts the response to the next request if none is in progress.
    private func respondNext() {
        while steps == nil, !isEnding {
            if pending == nil {
                guard let head = nextHead() else { break }
                guard let request = originState.recordRequest(head, connection: number) else {
                    disconnect(.close)
                    return
                }
                requestHeadReceived(request)
            }
            guard let request = readBody() else { break }
            requestCount += 1
            let response = originState.response(request)
            steps = response.steps(isHead: request.method == "HEAD")[...]
            if requestCount == requestsMax { steps?.append(.end(.close)) }
            proceed()
        }
        received.discardReadBytes()
        if received.readableBytes > Self.headBytesMax { disconnect(.close) }
    }

    private func requestHeadReceived(_ request: OriginRequest) {
        let body = ResponseReader(
            bodyOf: request.fields, recorder: originState.bodyRecorder(request))
        pending = (request, body)
        guard !body.isDone, request.fields["Expect"]?.lowercased() == "100-continue" else { return }
        write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"), isBody: false)
        channel.flush()
    }

    /// Reads more of the pending request's body; returns the request once the body is complete.
    private func readBody() -> OriginRequest? {
        guard var reading = pending else { return nil }
        reading.body.read(&received)
        originState.bodyReceived(reading.body.body, of: reading.request)
        pending = reading.body.isComplete ? nil : reading
        if reading.body.isDone, pending != nil { disconnect(.close) }
        return reading.body.isComplete ? reading.request : nil
    }

    /// Removes a complete head from the received bytes and returns it without the empty line.
    private func nextHead() -> String? {
        let view = received.readableBytesView
        var tail: UInt32 = 0
        for (offset, byte) in view.enumerated() {
            tail = tail << 8 | UInt32(byte)
            guard tail == 0x0D0A_0D0A else { continue }
            let head = received.readString(length: offset + 1)
            return head.map { String($0.dropLast(2)) }
        }
        return nil
    }

    /// Runs steps until a pause, back-pressure of the peer, or the end of the response.
    ///
    /// Writing and flushing call back into this handler when they change whether more can be
    /// written; the inner call leaves everything to the outer one.
    private func proceed() {
        guard !isProceeding else { return }
        isProceeding = true
        while canProceed, let step = steps?.popFirst() {
            switch step {
            case .send(let bytes): write(ByteBuffer(bytes: bytes), isBody: false)
            case .sendBody(let image, let range): sendPiece(image, range)
            case .pause(let stop): pause(stop)
            case .end(let how): disconnect(how)
            }
            if !channel.isWritable { channel.flush() }
        }
        channel.flush()
        isProceeding = false
        guard let steps else { return }
        if steps.isEmpty, !isPaused, !isEnding {
            self.steps = nil
            channel.eventLoop.execute { self.respondNext() }
        } else if canProceed {
            channel.eventLoop.execute { self.proceed() }
        }
    }

    private var canProceed: Bool {
        !isPaused && !isEnding && channel.isWritable && steps?.isEmpty == false
    }

    private func sendPiece(_ image: TestImage, _ range: Range<Int>) {
        let cut = min(range.lowerBound + Self.pieceBytesMax, range.upperBound)
        if cut < range.upperBound {
            steps = [.sendBody(image, cut..<range.upperBound)] + (steps ?? [])
        }
        for slice in image.slices(range.lowerBound..<cut) { write(slice, isBody: true) }
    }

    private func write(_ bytes: ByteBuffer, isBody: Bool) {
        let promise = channel.eventLoop.makePromise(of: Void.self)
        if isBody {
            let (originState, number, count) = (originState, number, bytes.readableBytes)
            promise.futureResult.whenSuccess {
                originState.bodyBytesSent(count, connection: number)
            }
        }
        channel.write(bytes, promise: promise)
    }

    private func pause(_ stop: OriginResponse.Pause) {
        let loop = channel.eventLoop
        channel.flush()
        isPaused = true
        let wake: @Sendable () -> Void = {
            self.isPaused = false
            self.proceed()
        }
        switch stop {
        case .gate(let gate): isPaused = gate.wait { loop.execute(wake) }
        case .seconds(let seconds):
            loop.scheduleTask(in: .milliseconds(Int64(seconds * 1_000)), wake)
        }
    }

    private func disconnect(_ how: OriginResponse.Disconnect) {
        isEnding = true
        let promise = channel.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { [channel] _ in
            guard case .reset = how, let socket = channel as? any SocketOptionProvider else {
                channel.close(promise: nil)
                return
            }
            socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                channel.close(promise: nil)
            }
        }
        channel.writeAndFlush(ByteBuffer(), promise: promise)
    }
}
