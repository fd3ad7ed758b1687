import Harness
import NIOCore
import NIOPosix

/// Asks a node for one image over and over, once a millisecond, and times the answers.
struct HitProbe {
    /// The node's port.
    let node: Int
    /// The target that asks for the image.
    let target: String

    func measure(
        for seconds: Int, on group: MultiThreadedEventLoopGroup
    ) async throws -> Latencies {
        let connection = try await EventLoopClient.connect(to: node, on: group).get()
        let done = connection.eventLoop.makePromise(of: Latencies.self)
        let request = ByteBuffer(bytes: HTTPConnection.request(target))
        connection.eventLoop.execute {
            RequestLoop(connection, request, seconds: seconds, done).sendNext()
        }
        let latencies = try await done.futureResult.get()
        // It may be closed already.
        try? await connection.eventLoop.submit { connection.close() }.get()
        return latencies
    }

    /// Owned by its connection's loop.
    private final class RequestLoop: @unchecked Sendable {
        private let connection: EventLoopClient
        private let request: ByteBuffer
        private let endsAt: UInt64
        private let done: EventLoopPromise<Latencies>
        private var latencies = Latencies()

        init(
            _ connection: EventLoopClient, _ request: ByteBuffer, seconds: Int,
            _ done: EventLoopPromise<Latencies>
        ) {
            self.connection = connection
            self.request = request
            self.done = done
            endsAt = nanoseconds() + UInt64(seconds) * 1_000_000_000
        }

        func sendNext() {
            let askedAt = nanoseconds()
            guard askedAt < endsAt else { return done.succeed(latencies) }
            connection.send(request) { response in
                guard response.isWhole, response.status == 200 else {
                    return self.done.fail(BenchError(description: "not the image: \(response)"))
                }
                self.latencies.add(nanoseconds() - askedAt)
                self.connection.eventLoop.scheduleTask(in: .milliseconds(1)) { self.sendNext() }
            }
        }
    }
}
