import Ground
import NIOCore
import NIOPosix
import Telemetry
import Wire

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
                admit(channel, side, isPlain: isPlain, to: node)
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
    ) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        guard let hall = node.hall(of: loop) else {
            return loop.makeFailedFuture(NodeIsStopping())
        }
        let client = Client(of: channel)
        let isProxied = ProxyHeaderReader.isNeeded(from: client.address, side, hall)
        let holder: ConnectionPlaces.Holder =
            isProxied
            ? .proxy(client.address) : hall.settings.holder(of: client.address, on: side)
        return enter(holder, side, hall).flatMapThrowing { answer in
            // Its connections were closed before this one was among them.
            guard !hall.isStopped else {
                if answer == .enters { hall.node.leave(holder, side) }
                throw NodeIsStopping()
            }
            let tls = isPlain ? nil : side == .data ? hall.settings.tls : hall.settings.adminTLS
            guard answer == .enters else {
                hall.counters.add(.connectionsRefused)
                // What could be said would need a handshake first.
                guard tls == nil else { throw NoRoom() }
                let id = hall.requestNames.id(hall.requestNames.next())
                return try channel.pipeline.syncOperations.addHandler(
                    FullHouse(id, answer == .full ? .full : .clientShare))
            }
            let client = Client(of: channel)
            client.holder = holder
            try open(channel, client, side, isProxied: isProxied, tls, on: hall)
        }
    }

    /// Gives a place to a newcomer; if there is none for it, that of a connection which is idle,
    /// and is the newcomer's own if its client has its share.
    ///
    /// Looks on its own loop first and then on the others: at first for one that has been idle for
    /// a while, then for any. An operator is turned away only after several such searches, with
    /// pauses between them: when many come at once, some hold a place before they have a connection
    /// that could be closed. No more operators wait than there are places, since each of them holds
    /// a descriptor: of too many the one goes that came first.
    private static func enter(
        _ holder: ConnectionPlaces.Holder, _ side: Door.Side, _ hall: Hall, looks: Int = 5
    ) -> EventLoopFuture<ConnectionPlaces.Answer> {
        let answer = hall.node.enter(holder, side)
        guard answer != .enters else { return hall.loop.makeSucceededFuture(answer) }
        let halls = [hall] + hall.node.halls.filter { $0 !== hall }
        let bounds = [SystemClock.now() - Hall.settledAfter, .distantFuture]
        let places = bounds.flatMap { bound in halls.map { (hall: $0, idleBefore: bound) } }
        return takeOver(places[...], holder, side, answer, hall).flatMap { answer in
            guard answer != .enters, side == .admin, looks > 1 else {
                return hall.loop.makeSucceededFuture(answer)
            }
            return pause(hall, waitingMax: max(1, NodeSettings.adminPlaces.places / halls.count))
                .flatMap { mayLook in
                    mayLook
                        ? enter(holder, side, hall, looks: looks - 1)
                        : hall.loop.makeSucceededFuture(answer)
                }
        }
    }

    /// True after a pause; false as soon as others need the room in which this one waits.
    private static func pause(_ hall: Hall, waitingMax: Int) -> EventLoopFuture<Bool> {
        let promise = hall.loop.makePromise(of: Bool.self)
        let (number, turnedAway) = hall.waitingOperators.enter(promise, max: waitingMax)
        turnedAway?.succeed(false)
        hall.loop.scheduleTask(in: lookPause) { hall.waitingOperators.leave(number) }
            .futureResult.whenComplete { result in
                switch result {
                case .success(let waited): waited?.succeed(true)
                // The loop ends.
                case .failure(let error): hall.waitingOperators.leave(number)?.fail(error)
                }
            }
        return promise.futureResult
    }

    private static let lookPause = TimeAmount.milliseconds(20)

    /// Gives a newcomer on `hall` the place of a connection at the first of `places` that has one.
    private static func takeOver(
        _ places: ArraySlice<(hall: Hall, idleBefore: Instant)>,
        _ holder: ConnectionPlaces.Holder, _ side: Door.Side, _ answer: ConnectionPlaces.Answer,
        _ hall: Hall
    ) -> EventLoopFuture<ConnectionPlaces.Answer> {
        guard let (next, bound) = places.first else {
            // Somebody may have left meanwhile.
            return hall.loop.makeSucceededFuture(hall.node.enter(holder, side))
        }
        let rest = places.dropFirst()
        if next === hall {
            guard hall.makeRoom(side, for: holder, answer, idleBefore: bound) else {
                return takeOver(rest, holder, side, answer, hall)
            }
            return hall.loop.makeSucceededFuture(.enters)
        }
        return next.loop.submit { next.makeRoom(side, for: holder, answer, idleBefore: bound) }
            .hop(to: hall.loop)
            .flatMap { hasRoom in
                guard !hasRoom else { return hall.loop.makeSucceededFuture(.enters) }
                return takeOver(rest, holder, side, answer, hall)
            }
    }

    private static func open(
        _ channel: any Channel, _ client: Client, _ side: Door.Side, isProxied: Bool,
        _ tls: TLSServerContext?, on hall: Hall
    ) throws {
        hall.counters.add(.connectionsAccepted)
        // Comes last, also for a channel that is closed before it is ever active.
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            if !client.hasYielded { hall.node.leave(client.holder, side) }
        }
        if isProxied {
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
