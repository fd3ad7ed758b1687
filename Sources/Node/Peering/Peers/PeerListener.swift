import Cluster
import Ground
import NIOCore
import NIOPosix
import Synchronization
import Telemetry

/// The socket that peers connect to.
final class PeerListener: Sendable {
    private let channel: any Channel
    private let hub: HubReference

    /// Known only after the port is.
    private final class HubReference: Sendable {
        let hub = Mutex<PeerHub?>(nil)
    }

    /// More than a cluster's members at once.
    private static let backlog: Int32 = 512

    private init(_ channel: any Channel, _ hub: HubReference) {
        self.channel = channel
        self.hub = hub
    }

    /// Opens the port; nobody is let in before ``admit(to:)``.
    ///
    /// - Throws: ``ListenError`` if the address cannot be listened on.
    static func open(
        _ address: ListenAddress, on group: MultiThreadedEventLoopGroup
    ) async throws -> PeerListener {
        let box = HubReference()
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.autoRead, value: false)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try accept(channel, box) }
            }
        let socket = try SocketAddress(ipAddress: "\(address.address)", port: Int(address.port))
        do {
            return PeerListener(try await bootstrap.bind(to: socket).get(), box)
        } catch let error as IOError {
            throw ListenError(address: address, reason: ErrorDescription.text(error))
        }
    }

    private static func accept(_ channel: any Channel, _ box: HubReference) throws {
        guard let hub = box.hub.withLock({ $0 }), let place = hub.acquirePermit() else {
            throw ChannelError.operationUnsupported
        }
        let remote = channel.remoteAddress?.ipAddress ?? "-"
        try channel.pipeline.syncOperations.addHandler(
            PeerConnection(
                hub.nextConnectionID(), hub: hub, permit: place, dialled: nil, remote: remote))
    }

    /// The port that was really opened.
    var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }

    /// Lets peers in, to `hub`.
    func startAccepting(to hub: PeerHub) async throws {
        self.hub.hub.withLock { $0 = hub }
        try await channel.setOption(.autoRead, value: true).get()
    }

    /// Nobody is let in after this returns.
    func close() async {
        hub.hub.withLock { $0 = nil }
        try? await channel.close().get()
    }
}

/// How many connections with peers of one kind may be open, those included that have not said who
/// they are.
final class PeerConnectionLimiter: Sendable {
    private let remaining: Atomic<Int>

    init(count: Int) {
        remaining = Atomic(count)
    }

    /// A place that is free again when nobody holds it; nil if there is none.
    func acquire() -> PeerConnectionPermit? {
        guard remaining.subtract(1, ordering: .relaxed).newValue >= 0 else {
            release()
            return nil
        }
        return PeerConnectionPermit(self)
    }

    fileprivate func release() {
        remaining.add(1, ordering: .relaxed)
    }
}

/// Room for one connection with a peer.
final class PeerConnectionPermit: Sendable {
    private let limiter: PeerConnectionLimiter

    fileprivate init(_ places: PeerConnectionLimiter) {
        self.limiter = places
    }

    deinit {
        limiter.release()
    }
}
