import Harness
import NIOCore
import NIOPosix
import Synchronization

/// Generator of purges at a constant rate, sent to each admin port in turn.
enum PurgeLoad {
    /// The largest number of connections to a port, of the 64 that a node accepts.
    ///
    /// A purge that is due when all are in use waits, and counts as late.
    private static let connectionsMax = 48

    private static let numbers = Atomic<UInt64>(0)

    /// Sends purges and returns when all have a response or have failed.
    ///
    /// `rate` is in targets per second; each request has `targets` targets.
    static func run(
        rate: Int, targets: Int, seconds: Int, ports: [Int], on loop: any EventLoop
    ) async throws -> PurgeResults {
        let interval = UInt64(targets) * 1_000_000_000 / UInt64(rate)
        var loads: [ConstantRateLoad.Handle] = []
        for (index, port) in ports.enumerated() {
            let load = try await ConstantRateLoad.make(
                on: loop, to: port, interval: interval * UInt64(ports.count),
                startsAfter: interval * UInt64(index), connectionsMax: connectionsMax,
                queuesWhenBusy: true
            ) { _ in request(targets) }
            loads.append(load)
        }
        var tally = PurgeResults()
        for seen in loads.map({ $0.run(Double(seconds)) }) { tally.add(try await seen.get()) }
        for load in loads { try await load.close() }
        return tally
    }

    private static func request(_ targets: Int) -> [UInt8] {
        let number = numbers.add(UInt64(targets), ordering: .relaxed).oldValue
        let urls = (number..<number + UInt64(targets)).map {
            "{\"url\":\"http://bench.example/\($0).png\"}"
        }
        let body = "{\"targets\":[\(urls.joined(separator: ","))]}"
        let head = HTTPConnection.request(
            "/admin/v1/purges?wait=all&timeout=10s", method: "POST",
            fields: [
                "Content-Type: application/json", "Content-Length: \(body.utf8.count)",
            ])
        return head + Array(body.utf8)
    }
}

/// The responses to purges.
struct PurgeResults: Sendable {
    private var latencies = Latencies()
    private var confirmed = 0
    private var unconfirmed = 0

    mutating func add(_ seen: ConstantRateLoad.Measurement) {
        latencies.add(seen.latencies)
        for (status, count) in seen.statuses {
            if status == 200 { confirmed += count } else { unconfirmed += count }
        }
    }

    /// The results, like `50 confirmed by all, 0 otherwise; p50 …`.
    var text: String {
        "\(confirmed) confirmed by all, \(unconfirmed) otherwise; \(latencies.text)"
    }
}

/// Probe that requests one image once per millisecond and measures the response times.
struct HitProbe {
    /// The node's port.
    let node: Int
    /// The target that requests the image.
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
        // The connection may be closed already.
        try? await connection.eventLoop.submit { connection.close() }.get()
        return latencies
    }

    /// The requests of a probe, confined to the connection's loop.
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
