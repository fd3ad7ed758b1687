import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Telemetry
import Wire

/// A listening socket: lets connections in, each onto one of the loops in turn.
struct Listener: CustomStringConvertible {
    let plane: RequestHandler.Plane
    private let channel: any Channel

    /// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
    private static let backlog: Int32 = 4096
    /// Bytes of one read from a client; larger heads come in several reads.
    private static let receiveBytes = 4096

    /// Connections are encrypted if the node has certificates, unless `isPlain`.
    ///
    /// - Throws: an `IOError` if the address cannot be listened on.
    static func install(
        _ address: ListenAddress, _ side: RequestHandler.Plane, isPlain: Bool = false,
        to node: NodeCore,
        on group: MultiThreadedEventLoopGroup
    ) async throws -> Listener {
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
                accept(channel, side, isPlain: isPlain, to: node)
            }
        let socket = try SocketAddress(
            ipAddress: "\(address.address)", port: Int(address.port))
        do {
            return Listener(plane: side, channel: try await bootstrap.bind(to: socket).get())
        } catch let error as IOError {
            throw ListenError(address: address, reason: ErrorDescription.text(error))
        }
    }

    private static func accept(
        _ channel: any Channel, _ side: RequestHandler.Plane, isPlain: Bool, to node: NodeCore
    ) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        guard let context = node.context(of: loop) else {
            return loop.makeFailedFuture(NodeStoppingError())
        }
        let client = Client(of: channel)
        let isProxied = ProxyProtocolHandler.isNeeded(from: client.address, side, context)
        let holder: ConnectionLimiter.ClientKey =
            isProxied
            ? .proxy(client.address) : context.settings.limiterKey(of: client.address, on: side)
        return admit(holder, side, context).flatMapThrowing { response in
            // Its connections were closed before this one was among them.
            guard !context.isStopped else {
                if response == .admitted { context.node.releaseConnection(holder, side) }
                throw NodeStoppingError()
            }
            let tls =
                isPlain ? nil : side == .data ? context.settings.tls : context.settings.adminTLS
            guard response == .admitted else {
                context.counters.add(.connectionsRefused)
                // What could be said would need a handshake first.
                guard tls == nil else { throw ConnectionLimitError() }
                let id = context.requestIDs.id(context.requestIDs.next())
                return try channel.pipeline.syncOperations.addHandler(
                    OverloadHandler(
                        id,
                        response == .connectionLimitReached
                            ? .connectionLimit : .clientConnectionLimit))
            }
            let client = Client(of: channel)
            client.limiterKey = holder
            try install(channel, client, side, isProxied: isProxied, tls, on: context)
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
    private static func admit(
        _ holder: ConnectionLimiter.ClientKey, _ side: RequestHandler.Plane,
        _ context: EventLoopContext, attemptsLeft: Int = 5
    ) -> EventLoopFuture<ConnectionLimiter.AdmissionDecision> {
        let response = context.node.admitConnection(holder, side)
        guard response != .admitted else { return context.loop.makeSucceededFuture(response) }
        let contexts = [context] + context.node.contexts.filter { $0 !== context }
        let bounds = [SystemClock.now() - EventLoopContext.idleTimeMin, .distantFuture]
        let places = bounds.flatMap { bound in contexts.map { (context: $0, idleBefore: bound) } }
        return preempt(places[...], holder, side, response, context).flatMap { response in
            guard response != .admitted, side == .admin, attemptsLeft > 1 else {
                return context.loop.makeSucceededFuture(response)
            }
            return waitInAdminQueue(
                context,
                waitingMax: max(
                    1, NodeSettings.adminConnectionLimits.connectionsMax / contexts.count)
            )
            .flatMap { mayLook in
                mayLook
                    ? admit(holder, side, context, attemptsLeft: attemptsLeft - 1)
                    : context.loop.makeSucceededFuture(response)
            }
        }
    }

    /// True after a pause; false as soon as others need the room in which this one waits.
    private static func waitInAdminQueue(_ context: EventLoopContext, waitingMax: Int)
        -> EventLoopFuture<Bool>
    {
        let promise = context.loop.makePromise(of: Bool.self)
        let (number, turnedAway) = context.adminQueue.enqueue(promise, max: waitingMax)
        turnedAway?.succeed(false)
        context.loop.scheduleTask(in: retryDelay) { context.adminQueue.dequeue(number) }
            .futureResult.whenComplete { result in
                switch result {
                case .success(let waited): waited?.succeed(true)
                // The loop ends.
                case .failure(let error): context.adminQueue.dequeue(number)?.fail(error)
                }
            }
        return promise.futureResult
    }

    private static let retryDelay = TimeAmount.milliseconds(20)

    /// Gives a newcomer on `hall` the place of a connection at the first of `places` that has one.
    private static func preempt(
        _ places: ArraySlice<(context: EventLoopContext, idleBefore: Instant)>,
        _ holder: ConnectionLimiter.ClientKey, _ side: RequestHandler.Plane,
        _ response: ConnectionLimiter.AdmissionDecision,
        _ context: EventLoopContext
    ) -> EventLoopFuture<ConnectionLimiter.AdmissionDecision> {
        guard let (next, bound) = places.first else {
            // Somebody may have left meanwhile.
            return context.loop.makeSucceededFuture(context.node.admitConnection(holder, side))
        }
        let rest = places.dropFirst()
        if next === context {
            guard context.preemptIdleConnection(side, for: holder, response, idleBefore: bound)
            else {
                return preempt(rest, holder, side, response, context)
            }
            return context.loop.makeSucceededFuture(.admitted)
        }
        return next.loop.submit {
            next.preemptIdleConnection(side, for: holder, response, idleBefore: bound)
        }
        .hop(to: context.loop)
        .flatMap { hasRoom in
            guard !hasRoom else { return context.loop.makeSucceededFuture(.admitted) }
            return preempt(rest, holder, side, response, context)
        }
    }

    private static func install(
        _ channel: any Channel, _ client: Client, _ side: RequestHandler.Plane, isProxied: Bool,
        _ tls: TLSServerContext?, on context: EventLoopContext
    ) throws {
        context.counters.add(.connectionsAccepted)
        // Comes last, also for a channel that is closed before it is ever active.
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            if !client.isPreempted { context.node.releaseConnection(client.limiterKey, side) }
        }
        if isProxied {
            try channel.pipeline.syncOperations.addHandler(
                ProxyProtocolHandler(on: context, side: side, client: client))
        }
        if let tls {
            try channel.pipeline.syncOperations.addHandler(
                TLSHandler(tls, on: context, side: side, client: client))
        } else {
            try channel.pipeline.syncOperations.addHandler(
                HTTP1Connection(on: context, plane: side, client: client))
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
private struct ConnectionLimitError: Error {}

/// A connection came in while its loop was being stopped.
private struct NodeStoppingError: Error {}

/// A port could not be opened; nothing was changed, and trying again helps only if the reason goes
/// away.
struct ListenError: Error, CustomStringConvertible {
    let address: ListenAddress
    let reason: String

    var description: String { "cannot listen on \(address): \(reason)" }
}

/// Tells a client for whom there is no door that it should try again, and closes.
final class OverloadHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Why there is none.
    enum Reason {
        case connectionLimit
        /// The client has as many connections as one client may have.
        case clientConnectionLimit
    }

    /// What the request that nobody reads is called.
    private let id: RequestID
    private let reason: Reason

    init(_ id: RequestID, _ reason: Reason) {
        self.id = id
        self.reason = reason
    }

    private static let full = body(of: .overloaded(.connections))
    private static let clientShare = body(of: .tooManyConnections)

    private static func body(of problem: Problem) -> [UInt8] {
        var body: [UInt8] = []
        problem.document.append(to: &body)
        return body
    }

    private var response: ByteBuffer {
        let (line, body) =
            switch reason {
            case .connectionLimit: ("503 Service Unavailable", Self.full)
            case .clientConnectionLimit: ("429 Too Many Requests", Self.clientShare)
            }
        var response = ByteBuffer()
        response.writeString("HTTP/1.1 \(line)\r\nContent-Type: application/problem+json\r\n")
        response.writeString("Content-Length: \(body.count)\r\nRetry-After: 1\r\n")
        response.writeString("X-Request-Id: \(id)\r\n")
        response.writeString("Cache-Control: no-store\r\nConnection: close\r\n\r\n")
        response.writeBytes(body)
        return response
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(response)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

/// Operators for whom there is no place yet, in the order in which they came.
struct AdminQueue {
    private var waiting: [(number: Int, promise: EventLoopPromise<Bool>)] = []
    private var next = 0

    /// Takes in one more.
    ///
    /// - Returns: the number to leave with, and the promise of the one that has to go, if there are
    ///   `max` already: the first.
    mutating func enqueue(
        _ promise: EventLoopPromise<Bool>, max: Int
    ) -> (number: Int, turnedAway: EventLoopPromise<Bool>?) {
        let first = waiting.count >= max ? waiting.removeFirst().promise : nil
        next += 1
        waiting.append((next, promise))
        return (next, first)
    }

    /// The promise of the one with this number; nil if it was turned away.
    mutating func dequeue(_ number: Int) -> EventLoopPromise<Bool>? {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return nil }
        return waiting.remove(at: place).promise
    }
}
