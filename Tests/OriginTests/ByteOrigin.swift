import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// An origin that does byte for byte what its scripts say; listens on a loopback address.
final class ByteOrigin: Sendable {
    /// One thing that a connection does, after the thing before it is done.
    enum Step: Sendable {
        /// Wait for the end of a request's head.
        case request
        case send(String)
        /// Send this many bytes of `block`, as fast as they are taken.
        case flood(Int)
        /// Each byte in a write of its own.
        case drip(String)
        /// Wait until the test opens the gate.
        case gate
        /// End the connection as TCP does, after everything sent.
        case close
        /// Break the connection.
        case reset
    }

    private struct Log {
        var connections = 0
        var requests: [String] = []
        var open = 0
        var bytesTaken = 0
    }

    private let log = Mutex(Log())
    private let scripts: [[Step]]
    private let gatePromise: EventLoopPromise<Void>
    private let channel: any Channel

    /// What a flood sends over and over; no piece of it looks like another.
    static let block = ByteBuffer(
        bytes: (0..<251 * 1024).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// True if `bytes` are the first ones of a flood.
    static func isFlood(_ bytes: ByteBuffer) -> Bool {
        var rest = bytes
        while let piece = rest.readSlice(length: min(block.readableBytes, rest.readableBytes)),
            piece.readableBytes > 0
        {
            if piece != block.getSlice(at: 0, length: piece.readableBytes) { return false }
        }
        return true
    }

    /// The nth connection follows the nth script, and those past the last one follow the last.
    static func listening(
        on group: any EventLoopGroup, address: String = "127.0.0.1", port: Int = 0,
        _ scripts: [Step]...
    ) async throws -> ByteOrigin {
        let box = LockedBox<ByteOrigin?>(nil)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let origin = box.value else { return }
                    let handler = ScriptHandler(origin, script: origin.begin())
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: address, port: port).get()
        let origin = ByteOrigin(channel, scripts)
        box.value = origin
        return origin
    }

    private init(_ channel: any Channel, _ scripts: [[Step]]) {
        self.channel = channel
        self.scripts = scripts
        gatePromise = channel.eventLoop.makePromise()
    }

    var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }
    var connections: Int { log.withLock { $0.connections } }
    var openConnections: Int { log.withLock { $0.open } }
    /// The heads received, in order.
    var requests: [String] { log.withLock { $0.requests } }
    /// Bytes of floods that were handed to the kernel.
    var bytesTaken: Int { log.withLock { $0.bytesTaken } }
    var gate: EventLoopFuture<Void> { gatePromise.futureResult }

    func openGate() {
        gatePromise.succeed(())
    }

    func stop() async throws {
        gatePromise.succeed(())
        try await channel.close()
    }

    private func begin() -> [Step] {
        let index = log.withLock { log in
            log.connections += 1
            log.open += 1
            return log.connections - 1
        }
        return scripts[min(index, scripts.count - 1)]
    }

    fileprivate func received(_ head: String) {
        log.withLock { $0.requests.append(head) }
    }

    fileprivate func took(_ count: Int) {
        log.withLock { $0.bytesTaken += count }
    }

    fileprivate func ended() {
        log.withLock { $0.open -= 1 }
    }
}

/// A value under a lock.
final class LockedBox<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) {
        mutex = Mutex(value)
    }

    var value: Value {
        get { mutex.withLock { $0 } }
        set { mutex.withLock { $0 = newValue } }
    }
}

private final class ScriptHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let origin: ByteOrigin
    private var script: ArraySlice<ByteOrigin.Step>
    private var received = ""
    private var isBusy = false

    init(_ origin: ByteOrigin, script: [ByteOrigin.Step]) {
        self.origin = origin
        self.script = script[...]
    }

    func channelActive(context: ChannelHandlerContext) {
        run(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        script = []
        origin.ended()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += String(buffer: unwrapInboundIn(data))
        run(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The client is gone; what it did not wait for is not sent.
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// A step is taken from the script before it is done, since it may come back here when it is.
    private func run(_ context: ChannelHandlerContext) {
        while !isBusy, let step = script.first {
            if case .request = step {
                guard let end = received.firstRange(of: "\r\n\r\n") else { return }
                origin.received(String(received[..<end.upperBound]))
                received.removeSubrange(..<end.upperBound)
            }
            script.removeFirst()
            perform(step, context)
        }
    }

    private func perform(_ step: ByteOrigin.Step, _ context: ChannelHandlerContext) {
        switch step {
        case .request: break
        case .send(let text):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        case .drip(let text):
            for byte in text.utf8 {
                let buffer = ByteBuffer(bytes: [byte])
                context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
            }
        case .flood(let count):
            isBusy = true
            flood(from: 0, to: count, context)
        case .gate: wait(for: origin.gate.hop(to: context.eventLoop), context)
        case .close:
            script = []
            context.close(mode: .all, promise: nil)
        case .reset:
            script = []
            let socket = context.channel as? any SocketOptionProvider
            socket?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
                .assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        }
    }

    private func wait(for future: EventLoopFuture<Void>, _ context: ChannelHandlerContext) {
        isBusy = true
        future.assumeIsolated().whenComplete { _ in
            self.isBusy = false
            self.run(context)
        }
    }

    private func flood(from start: Int, to end: Int, _ context: ChannelHandlerContext) {
        guard start < end else {
            isBusy = false
            return run(context)
        }
        let count = min(ByteOrigin.block.readableBytes, end - start)
        guard let piece = ByteOrigin.block.getSlice(at: 0, length: count) else { return }
        context.writeAndFlush(wrapOutboundOut(piece)).assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            self.origin.took(count)
            // Not at once: a write that is done at once would come back here deeper and deeper.
            context.eventLoop.assumeIsolated().execute {
                self.flood(from: start + count, to: end, context)
            }
        }
    }
}
