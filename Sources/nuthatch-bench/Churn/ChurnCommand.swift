import ArgumentParser
import Foundation
import Ground
import Harness
import NIOCore
import NIOPosix
import Synchronization

/// Runs an origin whose images change all the time, and clients that request them from a running
/// node.
struct ChurnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "churn",
        abstract: "Requests constantly changing images from a running node; checks every byte.",
        discussion: """
            Sizes are from 200 bytes to 5 MB, popularity follows Zipf's law, one image in 16 is \
            fresh for only two seconds. Slow clients read large images at 100 KB/s and give up \
            after 20 s. The exit status is 1 if a body was wrong, a status was neither 200 nor \
            503, or no connection could be opened.
            """)

    @Option(help: "Where the node listens.")
    var node = "127.0.0.1:8080"

    @Option(help: "Where the origin listens; the node must be allowed to fetch from it.")
    var origin = "127.0.0.1:9000"

    @Option(help: "Duration in seconds.")
    var seconds = 300

    @Option(help: "Images that exist at one time.")
    var images = 20_000

    @Option(help: "Images that are replaced per second.")
    var renewed = 100

    @Option(help: "Clients that send the next request as soon as they have a response.")
    var clients = 32

    @Option(help: "Clients that read slowly.")
    var slowClients = 64

    @Option(help: "Event loops of the clients.")
    var loops = 1

    @Option(help: "Seed of all random choices; random if not given.")
    var seed: UInt64?

    func validate() throws {
        guard Self.parse(node) != nil, Self.parse(origin) != nil else {
            throw ValidationError("--node and --origin: HOST:PORT")
        }
        guard seconds > 0, images > 0, renewed >= 0, clients > 0, slowClients >= 0, loops > 0 else {
            throw ValidationError("no such number")
        }
    }

    func run() async throws {
        guard let node = Self.parse(node), let origin = Self.parse(origin) else { return }
        var random = SystemRandomNumberGenerator()
        let seed = seed ?? random.next()
        print("seed \(seed)")
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let catalog = ChurnCatalog(slots: images, seed: seed)
        let site = try ScriptedOrigin(host: origin.host, port: origin.port, keepsLog: false)
        site.onAnyOtherPath(catalog.response)
        let world = ChurnContext(catalog: catalog, node: node, origin: origin, group: group)
        await churn(world, SplitMix64(seed: seed))
        site.stop()
        let tally = world.results.withLock { $0 }
        print(tally.report)
        guard tally.isClean, tally.count > 0 else { throw ExitCode(1) }
    }

    private func churn(_ world: ChurnContext, _ dice: SplitMix64) async {
        var dice = dice
        await withTaskGroup(of: Void.self) { tasks in
            for number in 0..<clients + slowClients {
                let seed = dice.next()
                let isSlow = number >= clients
                tasks.addTask { await world.keepClient(isSlow: isSlow, seed: seed) }
            }
            for second in 1...seconds {
                for _ in 0..<10 {
                    await world.pause()
                    world.catalog.replaceRandomImages(renewed / 10, using: &dice)
                }
                if second % 10 == 0 {
                    let (count, bytes) = world.results.withLock { ($0.count, $0.bytes) }
                    print("\(second) s: \(count) answers, \(bytes >> 20) MiB")
                }
            }
            world.end()
        }
    }

    private static func parse(_ text: String) -> (host: String, port: Int)? {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]), 0..<65_536 ~= port else { return nil }
        return (String(parts[0]), port)
    }
}
