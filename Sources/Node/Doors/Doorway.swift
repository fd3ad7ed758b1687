import NIOCore
import NIOPosix
import Telemetry

/// A listening socket: lets connections in, each onto one of the loops in turn.
struct Doorway: CustomStringConvertible {
    let side: Door.Side
    private let channel: any Channel

    /// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
    private static let backlog: Int32 = 4096
    /// Bytes of one read from a client; larger heads come in several reads.
    private static let receiveBytes = 4096

    /// Connections are encrypted if the node has certificates, unless `isPlain`.
    ///
    /// - Throws: an `IOError` if the address cannot be listened on.
    static func open(
        _ address: ListenAddress, _ side: Door.Side, isPlain: Bool = false, to node: NodeCore,
        on group: MultiThreadedEventLoopGroup
    ) async throws -> Doorway {
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: receiveBytes)
            )
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: 1, high: 1)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try admit(channel, side, isPlain: isPlain, to: node)
                }
            }
        let socket = try SocketAddress(
            ipAddress: "\(address.address)", port: Int(address.port))
        do {
            return Doorway(side: side, channel: try await bootstrap.bind(to: socket).get())
        } catch let error as IOError {
            throw ListenError(address: address, reason: ErrorWords.of(error))
        }
    }

    private static func admit(
        _ channel: any Channel, _ side: Door.Side, isPlain: Bool, to node: NodeCore
    ) throws {
        guard let hall = node.hall(of: channel.eventLoop) else { throw NodeIsStopping() }
        let tls = isPlain ? nil : side == .data ? hall.settings.tls : hall.settings.adminTLS
        guard node.openConnection(side) else {
            hall.counters.add(.connectionsRefused)
            // What could be said would need a handshake first.
            guard tls == nil else { throw NoRoom() }
            let id = hall.requestNames.id(hall.requestNames.next())
            return try channel.pipeline.syncOperations.addHandler(FullHouse(id))
        }
        hall.counters.add(.connectionsAccepted)
        // Comes last, also for a channel that is closed before it is ever active.
        channel.closeFuture.whenComplete { _ in node.connectionClosed(side) }
        let client = Client(of: channel)
        if ProxyHeaderReader.isNeeded(from: client.address, side, hall) {
            try channel.pipeline.syncOperations.addHandler(
                ProxyHeaderReader(on: hall, side: side, client: client))
        }
        if let tls {
            try channel.pipeline.syncOperations.addHandler(
                TLSHandler(tls, on: hall, side: side, client: client))
        } else {
            try channel.pipeline.syncOperations.addHandler(
                HTTP1Connection(on: hall, side: side, client: client))
        }
    }

    /// The address with the port that was really opened.
    var description: String {
        guard let address = channel.localAddress, let host = address.ipAddress else { return "-" }
        return host.contains(":")
            ? "[\(host)]:\(address.port ?? 0)" : "\(host):\(address.port ?? 0)"
    }

    /// Nothing is accepted after this returns; what is in stays.
    func close() async {
        try? await channel.close().get()
    }
}

/// As many connections as are allowed are open.
private struct NoRoom: Error {}

/// A connection came in while its loop was being stopped.
private struct NodeIsStopping: Error {}

/// A port could not be opened; nothing was changed, and trying again helps only if the reason goes
/// away.
struct ListenError: Error, CustomStringConvertible {
    let address: ListenAddress
    let reason: String

    var description: String { "cannot listen on \(address): \(reason)" }
}
