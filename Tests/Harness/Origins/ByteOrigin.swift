import Glibc
package import NIOCore
import NIOPosix
import Synchronization

/// An origin that sends scripted bytes; listens on a loopback address.
package final class ByteOrigin: Sendable {
    /// One action of a connection, started after the preceding one is done.
    package enum Step: Sendable {
        /// Wait for the end of a request's head.
        case awaitRequestHead
        /// Wait for this many bytes of a request's body, framing included.
        case awaitBody(Int)
        /// Wait for this text, which ends a request's body; its framing is included.
        case awaitBodyEnding(String)
        /// Stop reading until the test opens the gate.
        case stopReading
        case send(String)
        /// Send this many bytes of `block`, as fast as the peer accepts them.
        case flood(Int)
        /// Send each byte in a separate write.
        case drip(String)
        /// Send each byte in a separate write, `milliseconds` apart.
        case trickle(String, milliseconds: Int64)
        case sendBytes([UInt8])
        /// Send this text repeatedly until the connection is closed.
        case sendRepeatedly(String)
        /// Wait until the test opens the gate.
        case awaitGate
        /// Close the connection in order, after everything is sent.
        case close
        /// Reset the connection.
        case reset
    }

    private struct Log {
        var connections = 0
        var requests: [String] = []
        var bodies: [ByteBuffer] = []
        var open = 0
        var bytesTaken = 0
    }

    private let log = Mutex(Log())
    private let scripts: [[Step]]
    private let gatePromise: EventLoopPromise<Void>
    private let channel: any Channel

    /// The block that a flood repeats; no two parts of it are equal.
    package static let block = ByteBuffer(
        bytes: (0..<251 * 1024).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// True if `bytes` are the first bytes of a flood.
    package static func isFlood(_ bytes: ByteBuffer) -> Bool {
        var rest = bytes
        while let piece = rest.readSlice(length: min(block.readableBytes, rest.readableBytes)),
            piece.readableBytes > 0
        {
            if piece != block.getSlice(at: 0, length: piece.readableBytes) { return false }
        }
        return true
    }

    /// Starts an origin whose nth connection follows the nth script; further ones follow the last.
    ///
    /// `prepare` may add handlers before the script's handler.
    package static func listening(
        on group: any EventLoopGroup, address: String = "127.0.0.1", port: Int = 0,
        behind prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in },
        _ scripts: [Step]...
    ) async throws -> ByteOrigin {
        try await listening(
            on: group, address: address, port: port, behind: prepare, scripts: scripts)
    }

    /// Starts an origin with a list of scripts.
    package static func listening(
        on group: any EventLoopGroup, address: String = "127.0.0.1", port: Int = 0,
        behind prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in },
        scripts: [[Step]]
    ) async throws -> ByteOrigin {
        let box = LockedBox<ByteOrigin?>(nil)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let origin = box.value else { return }
                    try prepare(channel)
                    let handler = ByteOriginHandler(origin, script: origin.connectionOpened())
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

    package var port: UInt16 { UInt16(channel.localAddress?.port ?? 0) }
    package var connections: Int { log.withLock { $0.connections } }
    package var openConnections: Int { log.withLock { $0.open } }
    /// The request heads received, in order.
    package var requests: [String] { log.withLock { $0.requests } }
    /// The request bodies received, in order, with their framing.
    package var bodies: [ByteBuffer] { log.withLock { $0.bodies } }
    /// Flood bytes passed to the kernel.
    package var bytesSent: Int { log.withLock { $0.bytesTaken } }
    var gate: EventLoopFuture<Void> { gatePromise.futureResult }

    package func openGate() {
        gatePromise.succeed(())
    }

    package func stop() async throws {
        gatePromise.succeed(())
        try await channel.close()
    }

    private func connectionOpened() -> [Step] {
        let index = log.withLock { log in
            log.connections += 1
            log.open += 1
            return log.connections - 1
        }
        return scripts[min(index, scripts.count - 1)]
    }

    func record(_ head: String) {
        log.withLock { $0.requests.append(head) }
    }

    func record(body: ByteBuffer) {
        log.withLock { $0.bodies.append(body) }
    }

    func recordSent(_ count: Int) {
        log.withLock { $0.bytesTaken += count }
    }

    func connectionClosed() {
        log.withLock { $0.open -= 1 }
    }
}

final class ByteOriginHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let origin: ByteOrigin
    private var script: ArraySlice<ByteOrigin.Step>
    private var received = ByteBuffer()
    private var isBusy = false

    init(_ origin: ByteOrigin, script: [ByteOrigin.Step]) {
        self.origin = origin
        self.script = script[...]
    }

    func channelActive(context: ChannelHandlerContext) {
        runScript(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        script = []
        origin.connectionClosed()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received.writeImmutableBuffer(unwrapInboundIn(data))
        runScript(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The client has closed; unsent bytes are dropped.
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Runs the script; a step is removed before it runs, because its completion may re-enter here.
    private func runScript(_ context: ChannelHandlerContext) {
        while !isBusy, let step = script.first {
            switch step {
            case .awaitRequestHead:
                guard let head = readThrough("\r\n\r\n") else { return }
                origin.record(String(buffer: head))
            case .awaitBody(let count):
                guard let body = received.readSlice(length: count) else { return }
                origin.record(body: body)
            case .awaitBodyEnding(let text):
                guard let body = readThrough(text) else { return }
                origin.record(body: body)
            default: break
            }
            script.removeFirst()
            perform(step, context)
        }
    }

    /// Returns the received bytes up to and including `text`, or `nil` if it has not arrived.
    private func readThrough(_ text: String) -> ByteBuffer? {
        guard let range = received.readableBytesView.firstRange(of: Array(text.utf8)) else {
            return nil
        }
        return received.readSlice(length: range.upperBound - received.readerIndex)
    }

    private func perform(_ step: ByteOrigin.Step, _ context: ChannelHandlerContext) {
        switch step {
        case .awaitRequestHead, .awaitBody, .awaitBodyEnding: break
        case .send(let text):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        case .drip(let text):
            for byte in text.utf8 {
                let buffer = ByteBuffer(bytes: [byte])
                context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
            }
        case .trickle(let text, let milliseconds):
            isBusy = true
            trickle(Array(text.utf8)[...], .milliseconds(milliseconds), context)
        case .sendBytes(let bytes):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .sendRepeatedly(let text):
            isBusy = true
            let count = max(1, 4096 / text.utf8.count)
            repeated(ByteBuffer(string: String(repeating: text, count: count)), context)
        case .flood(let count):
            isBusy = true
            flood(from: 0, to: count, context)
        case .stopReading:
            let options = context.channel.syncOptions
            try? options?.setOption(.autoRead, value: false)
            origin.gate.hop(to: context.eventLoop).assumeIsolated().whenComplete { _ in
                try? options?.setOption(.autoRead, value: true)
            }
        case .awaitGate: wait(for: origin.gate.hop(to: context.eventLoop), context)
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
            self.runScript(context)
        }
    }

    private func trickle(
        _ bytes: ArraySlice<UInt8>, _ pause: TimeAmount, _ context: ChannelHandlerContext
    ) {
        guard let first = bytes.first, context.channel.isActive else {
            isBusy = false
            return runScript(context)
        }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [first])), promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.trickle(bytes.dropFirst(), pause, context)
        }
    }

    private func repeated(_ piece: ByteBuffer, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(piece)).assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            context.eventLoop.assumeIsolated().execute { self.repeated(piece, context) }
        }
    }

    private func flood(from start: Int, to end: Int, _ context: ChannelHandlerContext) {
        guard start < end else {
            isBusy = false
            return runScript(context)
        }
        let count = min(ByteOrigin.block.readableBytes, end - start)
        guard let piece = ByteOrigin.block.getSlice(at: 0, length: count) else { return }
        context.writeAndFlush(wrapOutboundOut(piece)).assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            self.origin.recordSent(count)
            // Deferred: a write that completes at once would recurse without bound.
            context.eventLoop.assumeIsolated().execute {
                self.flood(from: start + count, to: end, context)
            }
        }
    }
}
