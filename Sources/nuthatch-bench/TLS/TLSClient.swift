import Foundation
import Ground
import NIOCore
import NIOPosix
import Wire

/// A TLS connection to a server that performs its handshake and then stays idle; confined to its
/// loop.
final class TLSClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let session: TLSSession
    private let established: EventLoopPromise<TLSParameters>
    private var context: ChannelHandlerContext?
    private var ticketPromise: EventLoopPromise<Void>?

    init(
        _ tls: TLSClientContext, resuming: TLSResumption?,
        established: EventLoopPromise<TLSParameters>
    ) {
        session = TLSSession(tls, to: .name("localhost"), resuming: resuming)
        self.established = established
    }

    /// Returns a future that succeeds when the server's next ticket, which may be used once, has
    /// arrived, or the connection has ended without one.
    func waitForTicket(on loop: any EventLoop) -> EventLoopFuture<Void> {
        guard session.newResumption == nil, context != nil else {
            return loop.makeSucceededVoidFuture()
        }
        let promise = loop.makePromise(of: Void.self)
        ticketPromise = promise
        return promise.futureResult
    }

    func takeTicket() -> TLSResumption? { session.takeResumption() }

    func close() {
        session.close()
        sendOutput()
        context?.close(promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        established.fail(ChannelError.eof)
        ticketPromise.take()?.succeed()
    }

    func channelActive(context: ChannelHandlerContext) {
        session.start()
        sendOutput()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session.receive(unwrapInboundIn(data))
        while true {
            switch session.next() {
            case .needsMore:
                if session.newResumption != nil { ticketPromise.take()?.succeed() }
                return sendOutput()
            case .established(let parameters):
                sendOutput()
                established.succeed(parameters)
            case .data: break
            case .closed: return context.close(promise: nil)
            case .failed(let failure):
                established.fail(failure)
                return context.close(promise: nil)
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func sendOutput() {
        guard let context, let output = session.takeOutput() else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
    }
}

extension TLSClient {
    /// Returns the settings for servers whose certificates the PEM file at `path` vouches for.
    static func context(
        trusting path: String, _ protocols: [TLSApplicationProtocol]
    ) throws -> TLSClientContext {
        try TLSClientContext(
            TLSClientSettings(
                trustsSystem: false,
                issuersPEM: Array(try Data(contentsOf: URL(fileURLWithPath: path))),
                protocols: protocols))
    }

    /// Returns a new connection after its handshake, with the agreed parameters.
    static func connect(
        to port: Int, _ tls: TLSClientContext, resuming: TLSResumption? = nil,
        on loop: any EventLoop
    ) -> EventLoopFuture<(NIOLoopBound<TLSClient>, TLSParameters)> {
        let established = loop.makePromise(of: TLSParameters.self)
        let client = NIOLoopBound(
            TLSClient(tls, resuming: resuming, established: established),
            eventLoop: loop)
        return ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(client.value)
                }
            }
            .connect(host: "127.0.0.1", port: port)
            .flatMapError { error in
                established.fail(error)
                return loop.makeFailedFuture(error)
            }
            .flatMap { _ in established.futureResult }
            .map { (client, $0) }
    }
}
