import NIOCore
import Synchronization

/// One connection to an admin port, on which purges follow each other; what is due while one is
/// under way waits.
final class PurgeClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let load: PurgeLoad
    private let members: Int?
    /// Set before anything is issued.
    var channel: (any Channel)?
    // On the channel's loop.
    private var due: [UInt64] = []
    private var current: UInt64?
    private var received = ByteBuffer()
    private var idle: EventLoopPromise<Void>?
    private var isClosed = false

    private static let numbers = Atomic<UInt64>(0)

    init(_ load: PurgeLoad, members: Int?) {
        self.load = load
        self.members = members
    }

    /// A purge that is due at this time is to be issued.
    func issue(dueAt: UInt64) {
        channel?.eventLoop.execute { [self] in
            due.append(dueAt)
            next()
        }
    }

    /// Returns when nothing is under way, and the connection is closed.
    func finish() async throws {
        guard let channel else { return }
        let promise = channel.eventLoop.makePromise(of: Void.self)
        channel.eventLoop.execute { [self] in
            if current == nil, due.isEmpty { promise.succeed() } else { idle = promise }
        }
        try await promise.futureResult.get()
        // It may be closed already.
        try? await channel.close()
    }

    private func next() {
        guard current == nil, let channel else { return }
        guard !due.isEmpty else {
            idle?.succeed()
            idle = nil
            return
        }
        current = due.removeFirst()
        guard !isClosed else {
            answered(false)
            return next()
        }
        let number = Self.numbers.add(1, ordering: .relaxed).newValue
        let body = "{\"targets\":[{\"url\":\"http://bench.example/\(number).png\"}]}"
        var request = ByteBuffer()
        request.writeString(
            "POST /admin/v1/purges?wait=all&timeout=10s HTTP/1.1\r\nHost: localhost\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n")
        request.writeString(body)
        channel.writeAndFlush(request, promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        received.writeBuffer(&bytes)
        let text = received.readableBytesView
        guard let head = text.firstRange(of: "\r\n\r\n".utf8) else { return }
        let lines = String(decoding: text[..<head.lowerBound], as: UTF8.self).lowercased()
        let length = lines.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
        guard let length, text.endIndex - head.upperBound >= length else { return }
        let answer = String(decoding: text[head.upperBound...], as: UTF8.self)
        received.clear()
        answered(lines.dropFirst(9).prefix(3) == "200" && isWhole(answer))
        next()
    }

    private func isWhole(_ answer: String) -> Bool {
        guard let members else { return true }
        return answer.contains("\"confirmed\":\(members),")
    }

    private func answered(_ isConfirmed: Bool) {
        guard let current else { return }
        self.current = nil
        load.tally.withLock { tally in
            tally.latencies.add(nanoseconds() - current)
            if isConfirmed { tally.confirmed += 1 } else { tally.others += 1 }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        isClosed = true
        while current != nil || !due.isEmpty {
            if current == nil { current = due.removeFirst() }
            answered(false)
        }
        idle?.succeed()
        idle = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
