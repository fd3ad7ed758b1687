import Ground
import HTTPRules
import NIOCore
package import NIOPosix
import Platform
package import Telemetry
import Wire

/// A listening socket that accepts connections onto the event loops in turn.
package struct Listener: CustomStringConvertible {
    /// The port's purpose: clients or operators.
    package let plane: Plane
    private let channel: any Channel

    /// Length of the accept queue; the kernel lowers it to `net.core.somaxconn`.
    private static let backlog: Int32 = 4096
    /// Size of one read from a client, in bytes; larger heads take several reads.
    private static let receiveBytes = 4096

    /// Opens the socket and starts accepting.
    ///
    /// - Parameters:
    ///   - address: the address and port to bind.
    ///   - side: the plane whose limits and handlers apply.
    ///   - isPlain: true to accept plain connections even if the node has certificates.
    ///   - passed: a listening socket with this address, of which the listener becomes the owner;
    ///     `nil` to open one.
    ///   - node: the node that serves the connections.
    ///   - group: the event loops on which the connections run.
    /// - Returns: the listener, which already accepts connections.
    /// - Throws: a ``ListenError`` if the address cannot be bound.
    package static func install(
        _ address: ListenAddress, _ side: Plane, isPlain: Bool = false, passed: CInt? = nil,
        to node: NodeCore, on group: MultiThreadedEventLoopGroup
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
            let channel =
                if let passed {
                    try await bootstrap.withBoundSocket(passed).get()
                } else {
                    try await bootstrap.bind(to: socket).get()
                }
            return Listener(plane: side, channel: channel)
        } catch let error as IOError {
            throw ListenError(address: "\(address)", reason: ErrorDescription.text(error))
        }
    }

    /// Admits or refuses a new connection and sets up its pipeline.
    private static func accept(
        _ channel: any Channel, _ side: Plane, isPlain: Bool, to node: NodeCore
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
            // The context closed its connections before this one was registered.
            guard !context.isStopped else {
                if response == .admitted { context.node.slots.release(holder, side) }
                throw NodeStoppingError()
            }
            let tls =
                isPlain ? nil : side == .data ? context.settings.tls : context.settings.adminTLS
            guard response == .admitted else {
                context.counters.add(.connectionsRefused)
                // A response would require a TLS handshake first.
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

    /// Admits a new connection; if no slot is free, an idle connection is preempted, one of the
    /// same client if that client has reached its own limit.
    ///
    /// The search covers this loop and then the others: first for a connection that has been idle
    /// for ``ConnectionTable/idleTimeMin``, then for any idle one. Connections to the admin port
    /// are refused only after several searches with pauses between them: when many arrive at once,
    /// some hold a slot before they have a connection that could be closed. At most as many of them
    /// wait as there are slots, because each holds a descriptor; beyond that, the longest waiting
    /// one is refused.
    private static func admit(
        _ holder: ConnectionLimiter.ClientKey, _ side: Plane,
        _ context: EventLoopContext, attemptsLeft: Int = 5
    ) -> EventLoopFuture<ConnectionLimiter.AdmissionDecision> {
        let response = context.node.slots.admit(holder, side)
        guard response != .admitted else { return context.loop.makeSucceededFuture(response) }
        let contexts = [context] + context.node.contexts.filter { $0 !== context }
        let bounds = [SystemClock.now() - ConnectionTable.idleTimeMin, .distantFuture]
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

    /// Waits in the admin queue; completes with true after a pause, or with false at once when the
    /// queue needs the position for another connection.
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
                // The loop is shutting down.
                case .failure(let error): context.adminQueue.dequeue(number)?.fail(error)
                }
            }
        return promise.futureResult
    }

    /// Pause between two searches for a slot on the admin port.
    private static let retryDelay = TimeAmount.milliseconds(20)

    /// Preempts an idle connection for a new one, at the first of `places` that has one; if none
    /// has, decides on its admission once more.
    private static func preempt(
        _ places: ArraySlice<(context: EventLoopContext, idleBefore: Instant)>,
        _ holder: ConnectionLimiter.ClientKey, _ side: Plane,
        _ response: ConnectionLimiter.AdmissionDecision,
        _ context: EventLoopContext
    ) -> EventLoopFuture<ConnectionLimiter.AdmissionDecision> {
        guard let (next, bound) = places.first else {
            // A slot may have become free in the meantime.
            return context.loop.makeSucceededFuture(context.node.slots.admit(holder, side))
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

    /// Adds the handlers of an admitted connection to its pipeline.
    private static func install(
        _ channel: any Channel, _ client: Client, _ side: Plane, isProxied: Bool,
        _ tls: TLSServerContext?, on context: EventLoopContext
    ) throws {
        context.counters.add(.connectionsAccepted)
        // Runs last, also for a channel that was closed before it became active.
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            if !client.isPreempted { context.node.slots.release(client.limiterKey, side) }
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

    /// The local address, with the port that the kernel chose if 0 was configured; `-` once closed.
    package var description: String {
        guard let address = channel.localAddress, let host = address.ipAddress else { return "-" }
        return host.contains(":")
            ? "[\(host)]:\(address.port ?? 0)" : "\(host):\(address.port ?? 0)"
    }

    /// Stops accepting connections; those already accepted stay open.
    package func close() async {
        try? await channel.close().get()
    }
}

/// Error that closes a connection refused for a connection limit.
private struct ConnectionLimitError: Error {}

/// Error that closes a connection accepted while its loop was stopping.
private struct NodeStoppingError: Error {}

/// Channel handler that sends a refused client an error response with Retry-After and closes.
final class OverloadHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The limit that was reached.
    enum Reason {
        case connectionLimit
        /// The client has reached its own connection limit.
        case clientConnectionLimit
    }

    /// The ID in the response; the request itself is never read.
    private let id: RequestID
    private let reason: Reason

    /// Creates a handler whose response has the request ID `id`.
    init(_ id: RequestID, _ reason: Reason) {
        self.id = id
        self.reason = reason
    }

    /// Body for a port whose connection limit is reached, rendered once for all refusals.
    private static let full = body(of: .overloaded(.connections))
    /// Body for a client that has reached its own limit.
    private static let clientShare = body(of: .tooManyConnections)

    private static func body(of problem: Problem) -> [UInt8] {
        var body: [UInt8] = []
        problem.document.append(to: &body)
        return body
    }

    /// The complete response.
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

/// New admin connections that wait for a slot, in order of arrival.
struct AdminQueue {
    private var waiting: [(number: Int, promise: EventLoopPromise<Bool>)] = []
    /// Number of the connection that was added last.
    private var next = 0

    /// Adds a waiting connection.
    ///
    /// - Parameters:
    ///   - promise: the waiting connection's; the caller must complete it after removal.
    ///   - max: maximum number waiting.
    /// - Returns: the number to dequeue with, and the promise of the first connection if it was
    ///   removed to stay within `max`.
    mutating func enqueue(
        _ promise: EventLoopPromise<Bool>, max: Int
    ) -> (number: Int, turnedAway: EventLoopPromise<Bool>?) {
        let first = waiting.count >= max ? waiting.removeFirst().promise : nil
        next += 1
        waiting.append((next, promise))
        return (next, first)
    }

    /// Removes the connection with this number and returns its promise; `nil` if it was removed
    /// before.
    mutating func dequeue(_ number: Int) -> EventLoopPromise<Bool>? {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return nil }
        return waiting.remove(at: place).promise
    }
}
