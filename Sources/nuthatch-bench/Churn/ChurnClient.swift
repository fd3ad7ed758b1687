import Ground
import Harness
import NIOCore
import Synchronization

/// A client that asks for one image after the other over one connection, and holds every body
/// against what the origin has.
///
/// A slow one asks for large images only, takes some 100 KB a second, and gives up after a while.
/// Owned by its connection's loop.
final class ChurnClient {
    private let world: ChurnWorld
    private let connection: LoopClient
    private let isSlow: Bool
    private var dice: Dice

    private static let slowBytes = 500_000
    private static let patience = TimeAmount.seconds(20)
    /// How a slow one reads: 10,000 bytes each tenth of a second.
    static let slowly = LoopClient.Reading.slowly(bytesMax: 10_000, milliseconds: 100)

    init(_ world: ChurnWorld, _ connection: LoopClient, isSlow: Bool, seed: UInt64) {
        self.world = world
        self.connection = connection
        self.isSlow = isSlow
        dice = Dice(seed: seed)
    }

    /// Asks until the world is over, the connection ends, or patience does.
    func begin() {
        if isSlow {
            let (world, connection) = (world, connection)
            connection.eventLoop.scheduleTask(in: Self.patience) {
                guard connection.isOpen else { return }
                world.tally.withLock { $0.gaveUp() }
                connection.close()
            }
        }
        ask()
    }

    private func ask() {
        guard !world.isOver else { return connection.close() }
        let image =
            isSlow
            ? world.catalog.large(Self.slowBytes, using: &dice)
            : world.catalog.popular(using: &dice)
        let body = world.catalog.body(of: image)
        let askedAt = nanoseconds()
        let request = HTTPConnection.request(
            "/v1/image?url=\(world.originPart)\(image.path)", host: "node")
        connection.ask(ByteBuffer(bytes: request), expecting: body) { response in
            self.answered(response, body, nanoseconds: nanoseconds() - askedAt)
        }
    }

    private func answered(_ response: Response, _ body: TestImage, nanoseconds: UInt64) {
        guard response.looksWhole else {
            // What broke off in an answer, unless a slow client broke it off itself.
            if response.status != 0, !isSlow { world.tally.withLock { $0.connectionBroke() } }
            return connection.close()
        }
        let isWrong = response.status == 200 && !response.brings(body)
        let time = isSlow ? nil : nanoseconds
        world.tally.withLock { tally in
            tally.answered(
                response.status, bytes: response.bodyByteCount, isHit: response.isHit,
                nanoseconds: time)
            if isWrong { tally.foundWrong("\(body): \(response)") }
        }
        ask()
    }
}
