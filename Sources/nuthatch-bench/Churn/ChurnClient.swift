import Ground
import Harness
import NIOCore
import NIOPosix
import Synchronization

/// Client that requests images one after the other on one connection, and compares every body with
/// the origin's.
///
/// A slow one requests only large images, reads about 100 KB per second, and aborts after a while.
/// Confined to its connection's loop.
final class ChurnClient {
    private let configuration: ChurnContext
    private let connection: EventLoopClient
    private let isSlow: Bool
    private var dice: SplitMix64

    private static let slowBytes = 500_000
    private static let patience = TimeAmount.seconds(20)
    /// The reading of a slow client: 10,000 bytes every tenth of a second.
    static let slowReading = EventLoopClient.ReadMode.slowly(bytesMax: 10_000, milliseconds: 100)

    init(_ world: ChurnContext, _ connection: EventLoopClient, isSlow: Bool, seed: UInt64) {
        self.configuration = world
        self.connection = connection
        self.isSlow = isSlow
        dice = SplitMix64(seed: seed)
    }

    /// Sends requests until the run or the connection ends, or a slow client aborts.
    func start() {
        if isSlow {
            let (world, connection) = (configuration, connection)
            connection.eventLoop.scheduleTask(in: Self.patience) {
                guard connection.isOpen else { return }
                world.results.withLock { $0.recordAbandoned() }
                connection.close()
            }
        }
        sendNext()
    }

    private func sendNext() {
        guard !configuration.isOver else { return connection.close() }
        let image =
            isSlow
            ? configuration.catalog.large(Self.slowBytes, using: &dice)
            : configuration.catalog.popular(using: &dice)
        let body = configuration.catalog.body(of: image)
        let askedAt = nanoseconds()
        let request = HTTPConnection.request(
            "/v1/image?url=\(configuration.encodedOriginURL)\(image.path)", host: "node")
        connection.send(ByteBuffer(bytes: request), expecting: body) { response in
            self.responseReceived(response, body, nanoseconds: nanoseconds() - askedAt)
        }
    }

    private func responseReceived(_ response: Response, _ body: TestImage, nanoseconds: UInt64) {
        guard response.isWhole else {
            // The response was interrupted, unless a slow client has aborted it.
            if response.status != 0, !isSlow {
                configuration.results.withLock { $0.recordBrokenConnection() }
            }
            return connection.close()
        }
        let isWrong = response.status == 200 && !response.matches(body)
        let time = isSlow ? nil : nanoseconds
        configuration.results.withLock { tally in
            tally.recordResponse(
                response.status, bytes: response.bodyByteCount, isHit: response.isHit,
                nanoseconds: time)
            if isWrong { tally.recordWrongBody("\(body): \(response)") }
        }
        sendNext()
    }
}

/// The state that all clients of a churn share.
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

    /// Ends the run; clients send no more requests.
    func end() {
        isEnded.store(true, ordering: .relaxed)
    }

    /// Keeps one client connected until the end, with a new connection whenever one ends.
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

    /// Waits for a tenth of a second.
    func pause() async {
        try? await group.next().scheduleTask(in: .milliseconds(100)) {}.futureResult.get()
    }
}
