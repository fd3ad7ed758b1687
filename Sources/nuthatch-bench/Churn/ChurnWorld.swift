import Ground
import Harness
import NIOCore
import NIOPosix
import Synchronization

/// What all clients of a churn share.
final class ChurnWorld: Sendable {
    let catalog: ChurnCatalog
    let tally = Mutex(ChurnTally())
    /// The origin's URL without a path, encoded as a parameter.
    let originPart: String
    private let node: (host: String, port: Int)
    private let group: MultiThreadedEventLoopGroup
    private let over = Atomic<Bool>(false)

    init(
        catalog: ChurnCatalog, node: (host: String, port: Int), origin: (host: String, port: Int),
        group: MultiThreadedEventLoopGroup
    ) {
        self.catalog = catalog
        self.node = node
        self.group = group
        originPart = "http%3A%2F%2F\(origin.host)%3A\(origin.port)"
    }

    var isOver: Bool { over.load(ordering: .relaxed) }

    /// Clients ask nothing more.
    func end() {
        over.store(true, ordering: .relaxed)
    }

    /// Keeps one client connected until the end, with a new connection whenever one is over.
    func keepClient(isSlow: Bool, seed: UInt64) async {
        var dice = Dice(seed: seed)
        while !isOver {
            let clientSeed = dice.next()
            do {
                let connection = try await LoopClient.connect(
                    to: node.port, host: node.host, on: group,
                    reading: isSlow ? ChurnClient.slowly : .all
                ).get()
                try await connection.eventLoop.submit {
                    ChurnClient(self, connection, isSlow: isSlow, seed: clientSeed).begin()
                }.get()
                try await connection.closed.get()
            } catch {
                guard !isOver else { return }
                tally.withLock { $0.connectionFailed() }
                await pause()
            }
        }
    }

    /// A tenth of a second.
    func pause() async {
        try? await group.next().scheduleTask(in: .milliseconds(100)) {}.futureResult.get()
    }
}
