import Certificates
import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

/// The server side of TLS in front of a test's origin.
///
/// Writes wait until the handshake is complete.
final class ServerTLS: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let session: TLSSession
    /// True if the connection ends with close_notify.
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

/// Certificates and settings of the TLS tests.
enum Secure {
    static let authority = TestCertificate("Origins' authority", isIssuer: true)
    /// A certificate for the names and addresses in the tests.
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

    /// A trust store with the tests' authority only.
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

    /// Adds TLS in front of the channel's handlers.
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
    /// Starts a fetch over TLS.
    func beginSecure(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png",
        _ prepare: @escaping @Sendable (Recorder, OriginFetch) -> Void = { _, _ in }
    ) async throws -> EventLoopFuture<Outcome> {
        try await begin(Self.request("https://\(host):\(port)\(path)"), prepare)
    }

    /// Runs a fetch over TLS to its end.
    func getSecure(
        _ port: UInt16, host: String = "127.0.0.1", path: String = "/image.png"
    ) async throws -> Outcome {
        try await beginSecure(port, host: host, path: path).get()
    }
}

extension Outcome {
    /// The reason of a TLS failure; `nil` for other outcomes.
    var tlsCause: TLSFailureCause? {
        if case .tls(_, let failure)? = failure?.underlying { failure.cause } else { nil }
    }
}
