import Ground
import Harness
import NIOCore
import NIOPosix
import Synchronization

/// What all clients of a churn share.
final class ChurnContext: Sendable {
    let catalog: ChurnCatalog
    let results = Mutex(ChurnResults())
    /// The origin's URL without a path, encoded as a parameter.
    let encodedOriginURL: String
    private let node: (host: String, port: Int)
    private let group: MultiThreadedEventLoopGroup
    private let isEnded = Atomic<Bool>(false)

    init(
        catalog: ChurnCatalog, node: (host: String, port: Int), origin: (host: String, port: Int),
        group: MultiThreadedEventLoopGroup
    ) {
        self.catalog = catalog
        self.node = node
        self.group = group
        encodedOriginURL = "http%3A%2F%2F\(origin.host)%3A\(origin.port)"
    }

    var isOver: Bool { isEnded.load(ordering: .relaxed) }

    /// Clients ask nothing more.
    func end() {
        isEnded.store(true, ordering: .relaxed)
    }

    /// Keeps one client connected until the end, with a new connection whenever one is over.
    func keepClient(isSlow: Bool, seed: UInt64) async {
        var dice = SplitMix64(seed: seed)
        while !isOver {
            let clientSeed = dice.next()
            do {
                let connection = try await EventLoopClient.connect(
                    to: node.port, host: node.host, on: group,
                    readMode: isSlow ? ChurnClient.slowReading : .all
                ).get()
                try await connection.eventLoop.submit {
                    ChurnClient(self, connection, isSlow: isSlow, seed: clientSeed).start()
                }.get()
                try await connection.closed.get()
            } catch {
                guard !isOver else { return }
                results.withLock { $0.recordFailedConnection() }
                await pause()
            }
        }
    }

    /// A tenth of a second.
    func pause() async {
        try? await group.next().scheduleTask(in: .milliseconds(100)) {}.futureResult.get()
    }
}
