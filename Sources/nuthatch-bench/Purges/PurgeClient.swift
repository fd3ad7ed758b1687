import Harness
import NIOCore
import Synchronization

/// One connection to an admin port, on which purges follow each other; what is due while one is
/// under way waits.
///
/// Owned by its connection's loop.
final class PurgeClient: @unchecked Sendable {
    private let connection: LoopClient
    private let load: PurgeLoad
    private let targets: Int
    private var due: [UInt64] = []
    private var current: UInt64?
    private var idle: EventLoopPromise<Void>?

    private static let numbers = Atomic<UInt64>(0)

    /// Each request has so many `targets`.
    init(_ load: PurgeLoad, _ connection: LoopClient, targets: Int) {
        self.load = load
        self.connection = connection
        self.targets = targets
    }

    /// A purge that is due at this time is to be issued.
    func issue(dueAt: UInt64) {
        connection.eventLoop.execute { [self] in
            due.append(dueAt)
            next()
        }
    }

    /// Returns when nothing is under way, and the connection is closed.
    func finish() async throws {
        let promise = connection.eventLoop.makePromise(of: Void.self)
        connection.eventLoop.execute { [self] in
            if current == nil, due.isEmpty { promise.succeed() } else { idle = promise }
        }
        try await promise.futureResult.get()
        try await connection.eventLoop.submit { [connection] in connection.close() }.get()
    }

    private func next() {
        guard current == nil else { return }
        guard !due.isEmpty else {
            idle.take()?.succeed()
            return
        }
        let dueAt = due.removeFirst()
        current = dueAt
        connection.ask(request(), keepsBody: true) { [self] response in
            current = nil
            load.tally.withLock { tally in
                tally.latencies.add(nanoseconds() - dueAt)
                if response.looksWhole, response.status == 200 {
                    tally.confirmed += 1
                } else {
                    tally.others += 1
                }
            }
            next()
        }
    }

    private func request() -> ByteBuffer {
        let number = Self.numbers.add(UInt64(targets), ordering: .relaxed).oldValue
        let urls = (number..<number + UInt64(targets)).map {
            "{\"url\":\"http://bench.example/\($0).png\"}"
        }
        let body = "{\"targets\":[\(urls.joined(separator: ","))]}"
        let head = HTTPConnection.request(
            "/admin/v1/purges?wait=all&timeout=10s", method: "POST",
            fields: [
                "Content-Type: application/json", "Content-Length: \(body.utf8.count)",
            ])
        var request = ByteBuffer(bytes: head)
        request.writeString(body)
        return request
    }
}
