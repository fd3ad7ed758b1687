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
