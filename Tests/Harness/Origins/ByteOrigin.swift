import Glibc
package import NIOCore
import NIOPosix
import Synchronization

/// An origin that does byte for byte what its scripts say; listens on a loopback address.
package final class ByteOrigin: Sendable {
    /// One thing that a connection does, after the thing before it is done.
    package enum Step: Sendable {
        /// Wait for the end of a request's head.
        case awaitRequestHead
        /// Wait for this many bytes of a request's body, framing included.
        case awaitBody(Int)
        /// Wait for this text, up to which everything is a request's body with its framing.
        case awaitBodyEnding(String)
        /// Read no more until the test opens the gate.
        case stopReading
        case send(String)
        /// Send this many bytes of `block`, as fast as they are taken.
        case flood(Int)
        /// Each byte in a write of its own.
        case drip(String)
        /// The same, with so many milliseconds between them.
        case trickle(String, milliseconds: Int64)
        case sendBytes([UInt8])
        /// Send this text again and again until the connection is closed.
        case sendRepeatedly(String)
        /// Wait until the test opens the gate.
        case awaitGate
        /// End the connection as TCP does, after everything sent.
        case close
        /// Break the connection.
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

    /// What a flood sends over and over; no piece of it looks like another.
    package static let block = ByteBuffer(
        bytes: (0..<251 * 1024).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// True if `bytes` are the first ones of a flood.
    package static func isFlood(_ bytes: ByteBuffer) -> Bool {
        var rest = bytes
        while let piece = rest.readSlice(length: min(block.readableBytes, rest.readableBytes)),
            piece.readableBytes > 0
        {
            if piece != block.getSlice(at: 0, length: piece.readableBytes) { return false }
        }
        return true
    }

    /// The nth connection follows the nth script, and those past the last one follow the last.
    ///
    /// `prepare` may put handlers in front of the script's.
    package static func listening(
        on group: any EventLoopGroup, address: String = "127.0.0.1", port: Int = 0,
        behind prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in },
        _ scripts: [Step]...
    ) async throws -> ByteOrigin {
        try await listening(
            on: group, address: address, port: port, behind: prepare, scripts: scripts)
    }

    /// The same for a list.
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
    /// The heads received, in order.
    package var requests: [String] { log.withLock { $0.requests } }
    /// The bodies received, in order, with their framing.
    package var bodies: [ByteBuffer] { log.withLock { $0.bodies } }
    /// Bytes of floods that were handed to the kernel.
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
        // The client is gone; what it did not wait for is not sent.
        if case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// A step is taken from the script before it is done, since it may come back here when it is.
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

    /// What came up to and with `text`; nil if that has not come.
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
            // Not at once: a write that is done at once would come back here deeper and deeper.
            context.eventLoop.assumeIsolated().execute {
                self.flood(from: start + count, to: end, context)
            }
        }
    }
}
