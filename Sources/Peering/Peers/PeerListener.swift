import Cluster
import Ground
import NIOCore
package import NIOPosix
import Platform
import Synchronization
package import Telemetry

/// The socket that peers connect to.
package final class PeerListener: Sendable {
    private let channel: any Channel
    private let hub: HubReference

    /// The holder of the hub, which exists only after the port is open; empty before connections
    /// are accepted and after the close.
    private final class HubReference: Sendable {
        let hub = Mutex<PeerHub?>(nil)
    }

    /// The length of the accept queue, more than a cluster has members.
    private static let backlog: Int32 = 512

    /// Creates the listener of an open port.
    private init(_ channel: any Channel, _ hub: HubReference) {
        self.channel = channel
        self.hub = hub
    }

    /// Opens the port; connections are accepted from ``startAccepting(to:)`` on.
    ///
    /// - Throws: ``ListenError`` if the address cannot be used.
    package static func open(
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
            throw ListenError(address: "\(address)", reason: ErrorDescription.text(error))
        }
    }

    /// Sets up an accepted channel; throws, which closes it, if there is no hub or no permit.
    private static func accept(_ channel: any Channel, _ box: HubReference) throws {
        guard let hub = box.hub.withLock({ $0 }), let place = hub.acquirePermit() else {
            throw ChannelError.operationUnsupported
        }
        let remote = channel.remoteAddress?.ipAddress ?? "-"
        try channel.pipeline.syncOperations.addHandler(
            PeerConnection(
                hub.nextConnectionID(), hub: hub, permit: place, dialled: nil, remote: remote))
    }

    /// The port that was opened, also if the kernel chose it.
    package var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }

    /// Accepts connections for `hub` from now on.
    ///
    /// - Throws: the error of the channel, if it is closed.
    package func startAccepting(to hub: PeerHub) async throws {
        self.hub.hub.withLock { $0 = hub }
        try await channel.setOption(.autoRead, value: true).get()
    }

    /// Closes the port; no connection is accepted after this returns.
    package func close() async {
        hub.hub.withLock { $0 = nil }
        try? await channel.close().get()
    }
}

/// The limit of open connections of one kind, dialled or accepted, including those whose peer is
/// not identified yet.
final class PeerConnectionLimiter: Sendable {
    private let remaining: Atomic<Int>

    /// Creates a limiter for `count` connections.
    init(count: Int) {
        remaining = Atomic(count)
    }

    /// Returns a permit, which is released with its last reference; `nil` if all are in use.
    func acquire() -> PeerConnectionPermit? {
        guard remaining.subtract(1, ordering: .relaxed).newValue >= 0 else {
            release()
            return nil
        }
        return PeerConnectionPermit(self)
    }

    /// Returns a permit to the limiter.
    fileprivate func release() {
        remaining.add(1, ordering: .relaxed)
    }
}

/// A permit for one connection with a peer, returned to its limiter when it is deallocated.
final class PeerConnectionPermit: Sendable {
    private let limiter: PeerConnectionLimiter

    fileprivate init(_ places: PeerConnectionLimiter) {
        self.limiter = places
    }

    deinit {
        limiter.release()
    }
}
