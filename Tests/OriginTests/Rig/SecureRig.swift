import Certificates
import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

/// The server's side of TLS in front of an origin of a test.
///
/// Writes wait until the handshake is done.
final class ServerTLS: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let session: TLSSession
    /// The connection's end is said with close_notify.
    private let notifies: Bool
    private let established: (TLSParameters, ChannelHandlerContext) -> Void
    private var isOpen = false
    private var pending: [ByteBuffer] = []
    private var promises: [EventLoopPromise<Void>] = []

    init(
        _ server: TLSServerContext, notifies: Bool = true,
        established: @escaping (TLSParameters, ChannelHandlerContext) -> Void = { _, _ in }
    ) {
        session = TLSSession(server)
        self.notifies = notifies
        self.established = established
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session.receive(unwrapInboundIn(data))
        while true {
            switch session.next() {
            case .needsMore: return send(context)
            case .established(let parameters):
                isOpen = true
                send(context)
                established(parameters, context)
                flush(context: context)
            case .data(let plaintext): context.fireChannelRead(wrapInboundOut(plaintext))
            case .closed, .failed:
                send(context)
                return context.close(promise: nil)
            }
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        pending.append(unwrapOutboundIn(data))
        if let promise { promises.append(promise) }
    }

    func flush(context: ChannelHandlerContext) {
        guard isOpen, !pending.isEmpty else { return context.flush() }
        session.write(pending, now: bootClock())
        pending = []
        let written = context.eventLoop.makePromise(of: Void.self)
        for promise in promises { written.futureResult.cascade(to: promise) }
        promises = []
        if let output = session.takeOutput() {
            context.writeAndFlush(wrapOutboundOut(output), promise: written)
        } else {
            written.fail(ChannelError.ioOnClosedChannel)
        }
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        if notifies, isOpen {
            session.close()
            send(context)
        }
        context.close(mode: mode, promise: promise)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for promise in promises { promise.fail(ChannelError.ioOnClosedChannel) }
    }

    private func send(_ context: ChannelHandlerContext) {
        guard let output = session.takeOutput() else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
    }
}

/// Certificates and settings of the stories about TLS.
enum Secure {
    static let authority = TestCertificate("Origins' authority", isIssuer: true)
    /// For the names and addresses that tests ask for.
    static let good = TestCertificate(
        "good", names: "DNS:a.example, DNS:b.example, IP:127.0.0.1, IP:::1", issuer: authority)

    static func server(
        _ certificate: TestCertificate = good, protocols: [TLSApplicationProtocol] = [.http11],
        minimumVersion: TLSVersion = .tls12
    ) throws -> TLSServerContext {
        try TLSServerContext(
            TLSServerSettings(
                identities: [certificate.identity], protocols: protocols,
                minimumVersion: minimumVersion))
    }

    /// Believes the tests' authority, and nobody else.
    static func trust(
        _ issuer: TestCertificate? = authority, pins: [TLSPin] = [],
        minimumVersion: TLSVersion = .tls12,
        protocols: [TLSApplicationProtocol] = [.http2, .http11]
    ) throws -> OriginTrustStore {
        try OriginTrustStore(
            TLSClientSettings(
                trustsSystem: false, issuersPEM: issuer?.pem, pins: pins,
                minimumVersion: minimumVersion, protocols: protocols))
    }

    /// Puts TLS in front of what the channel has.
    static func behind(
        _ server: TLSServerContext, notifies: Bool = true,
        established: @escaping @Sendable (TLSParameters) -> Void = { _ in }
    ) -> @Sendable (any Channel) throws -> Void {
        { channel in
            try channel.pipeline.syncOperations.addHandler(
                ServerTLS(server, notifies: notifies) { parameters, _ in established(parameters) })
        }
    }
}

extension Rig {
    /// Begins a fetch over TLS.
    func beginSecure(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png",
        _ prepare: @escaping @Sendable (Recorder, OriginFetch) -> Void = { _, _ in }
    ) async throws -> EventLoopFuture<Outcome> {
        try await begin(Self.request("https://\(host):\(port)\(path)"), prepare)
    }

    /// A whole fetch over TLS.
    func getSecure(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png"
    ) async throws -> Outcome {
        try await beginSecure(port, host: host, path: path).get()
    }
}

extension Outcome {
    /// Why there is no TLS connection; nil if that is not what failed.
    var tlsCause: TLSFailureCause? {
        if case .tls(_, let failure)? = failure?.underlying { failure.cause } else { nil }
    }
}
