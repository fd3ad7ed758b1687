import Glibc
import NIOCore

/// One client of a swarm, owned by its event loop.
final class SwarmClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let channel: any Channel
    /// The loop that owns this client.
    var eventLoop: any EventLoop { channel.eventLoop }
    private let plan: SwarmClientPlan
    private var reader: ResponseReader
    /// Called once with the response, and never again.
    private var report: (@Sendable (Response) -> Void)?
    private var isReading: Bool

    init(
        _ plan: SwarmClientPlan, channel: any Channel,
        report: @escaping @Sendable (Response) -> Void
    ) {
        self.plan = plan
        self.channel = channel
        self.report = report
        reader = ResponseReader(method: "GET", record: .comparing(plan.expecting))
        isReading =
            switch plan.behaviour {
            case .neverRead: false
            default: true
            }
    }

    func channelActive(context: ChannelHandlerContext) {
        channel.writeAndFlush(ByteBuffer(bytes: plan.request), promise: nil)
        if case .leaveAfter(bodyBytes: 0) = plan.behaviour { finish(.abandoned) }
        readOn()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        reader.read(&piece)
        if reader.isDone { return finish(.complete) }
        guard case .leaveAfter(let bytes) = plan.behaviour, reader.hasHead,
            reader.bodyByteCount >= bytes
        else { return }
        finish(.abandoned)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard case .readSlowly(_, let milliseconds) = plan.behaviour else { return readOn() }
        channel.eventLoop.scheduleTask(in: .milliseconds(Int64(milliseconds))) { self.readOn() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.cutShort)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let isReset = (error as? IOError)?.errnoCode == ECONNRESET
        finish(isReset ? .reset : .cutShort)
    }

    /// Begins to read what was left unread.
    func startReading() {
        isReading = true
        readOn()
    }

    /// Ends the client with what it has.
    func stop() {
        finish(.abandoned)
    }

    private func readOn() {
        guard isReading, report != nil else { return }
        channel.read()
    }

    private func finish(_ ending: Ending) {
        reader.end(ending)
        report?(reader.response)
        report = nil
        channel.close(promise: nil)
    }
}
