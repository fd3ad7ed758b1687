import NIOCore
import Synchronization

/// One connection to an admin port, on which purges follow each other; what is due while one is
/// under way waits.
final class PurgeClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let load: PurgeLoad
    private let members: Int?
    private let targets: Int
    /// Set before anything is issued.
    var channel: (any Channel)?
    // On the channel's loop.
    private var due: [UInt64] = []
    private var current: UInt64?
    private var received = ByteBuffer()
    private var idle: EventLoopPromise<Void>?
    private var isClosed = false

    private static let numbers = Atomic<UInt64>(0)

    /// Each request has so many `targets`.
    init(_ load: PurgeLoad, targets: Int, members: Int?) {
        self.load = load
        self.targets = targets
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
        let number = Self.numbers.add(UInt64(targets), ordering: .relaxed).oldValue
        let urls = (number..<number + UInt64(targets)).map {
            "{\"url\":\"http://bench.example/\($0).png\"}"
        }
        let body = "{\"targets\":[\(urls.joined(separator: ","))]}"
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
        guard let answer = HTTPAnswer(received.readableBytesView) else { return }
        received.clear()
        answered(answer.status == 200 && isWhole(answer.body))
        next()
    }

    private func isWhole(_ answer: ByteBufferView) -> Bool {
        guard let members else { return true }
        return String(decoding: answer, as: UTF8.self).contains("\"confirmed\":\(members),")
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

/// An answer of a node's admin port.
private struct HTTPAnswer {
    let status: Int
    let body: ByteBufferView

    /// Nil as long as it is not whole.
    init?(_ bytes: ByteBufferView) {
        // Few heads are longer; looking for their end in a whole receipt would cost.
        let head = bytes.prefix(1_024)
        guard
            let end = head.indices.first(where: {
                head[$0] == 13 && head[$0...].starts(with: "\r\n\r\n".utf8)
            })
        else { return nil }
        let lines = String(decoding: head[..<end], as: UTF8.self).lowercased()
            .split(separator: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length: ") }
            .flatMap { Int($0.dropFirst("content-length: ".count)) }
        guard let length, bytes.endIndex - (end + 4) >= length else { return nil }
        status = lines.first.flatMap { Int($0.dropFirst(9).prefix(3)) } ?? 0
        body = bytes[(end + 4)...]
    }
}
