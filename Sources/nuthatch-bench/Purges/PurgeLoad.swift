import Harness
import NIOCore
import NIOPosix
import Synchronization

/// Purges at a steady rate over as many connections as are needed; confined to one loop.
final class PurgeLoad: Sendable {
    /// Requests a second.
    private let rate: Double
    private let targets: Int
    private let seconds: Int
    /// Admin ports; connections go to each in turn.
    private let ports: [Int]
    let tally = Mutex(PurgeTally())

    /// More connections than that to a port are not opened: what is due then waits, and is late.
    ///
    /// A node takes 64.
    private static let connectionsMax = 48

    /// `rate` is of targets a second; a request has so many `targets`.
    init(rate: Int, targets: Int = 1, seconds: Int, ports: [Int]) {
        self.rate = Double(rate) / Double(targets)
        self.targets = targets
        self.seconds = seconds
        self.ports = ports
    }

    /// Returns when all were answered, or could not be.
    func run(on group: MultiThreadedEventLoopGroup) async throws -> PurgeTally {
        let clients = try await connect(on: group)
        let start = nanoseconds()
        let count = max(1, Int(rate * Double(seconds)))
        var issued = 0
        while issued < count {
            let due = min(count, Int(Double(nanoseconds() - start) * rate / 1e9) + 1)
            while issued < due {
                let dueAt = start + UInt64(Double(issued) * 1e9 / rate)
                clients[issued % clients.count].issue(dueAt: dueAt)
                issued += 1
            }
            try await group.any().scheduleTask(in: .microseconds(500)) {}.futureResult.get()
        }
        for client in clients { try await client.finish() }
        return tally.withLock { $0 }
    }

    private func connect(on group: MultiThreadedEventLoopGroup) async throws -> [PurgeClient] {
        var clients: [PurgeClient] = []
        for number in 0..<min(Int(rate) + 1, Self.connectionsMax * ports.count) {
            let connection = try await LoopClient.connect(
                to: ports[number % ports.count], on: group
            ).get()
            let client = PurgeClient(self, connection, targets: targets)
            clients.append(client)
        }
        return clients
    }
}

/// How purges were answered.
struct PurgeTally: Sendable {
    var latencies = Latencies()
    var confirmed = 0
    var others = 0

    /// Like `50 confirmed by all, 0 otherwise, p50 …`.
    var text: String { "\(confirmed) confirmed by all, \(others) otherwise; \(latencies.text)" }
}
