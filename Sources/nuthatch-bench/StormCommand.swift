import ArgumentParser
import Harness
import NIOCore
import NIOPosix

/// Measures whether hits are affected when an origin is down and many misses are sent to it.
struct StormCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storm",
        abstract: "Times hits on its own node while misses go to an origin that is down.",
        discussion: """
            Three kinds of slices alternate in one run: quiet ones; ones in which as many \
            requests go to another server, which shows what this program's own load costs; and \
            ones in which they go to the node as misses. A time is counted from the instant at \
            which its request was due. A ratio is the median over the rounds, whose slices \
            follow each other, so that a moment in which the machine did something else affects \
            only one round. All requests come from one loop, so that with --loops 1 on two \
            cores node and requests have a core each. The origin that the images came from is \
            stopped before the first slice. Misses go to its port, where nothing listens any \
            more, or with --silent to an address that neither accepts nor refuses connections.
            """)

    @Option(help: "Hits per second, over images of 10 KB.")
    var hits = 2000

    @Option(help: "Misses per second in a slice with misses.")
    var misses = 2000

    @Option(help: "Seconds of each slice.")
    var seconds = 0.5

    @Option(help: "Slices of each kind.")
    var rounds = 40

    @Option(help: "Images in memory.")
    var images = 1000

    @Flag(help: "The origin neither accepts nor refuses connections.")
    var silent = false

    @Argument(help: "Further flags of nuthatch serve, after --.")
    var flags: [String] = []

    func validate() throws {
        guard hits > 0, misses > 0, seconds > 0, rounds > 0, images > 0 else {
            throw ValidationError("every number is above 0")
        }
    }

    func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let node = try NodeProcess(["--log-level", "warning"] + flags)
        let origin = try ScriptedOrigin()
        origin.onAnyOtherPath(Self.answer)
        try fill(node, from: origin)
        origin.stop()
        let deaf = silent ? try FullBacklogListener() : nil
        let bystander = try ScriptedOrigin(keepsLog: false)
        bystander.onAnyOtherPath(Self.answer)
        try await measure(
            node.port, origin: origin.port, dead: deaf?.port ?? origin.port,
            bystander: bystander.port, on: group.next())
        withExtendedLifetime((node, bystander, deaf)) {}
        try await group.shutdownGracefully()
    }

    /// Returns the same image of 10 KB for any path.
    @Sendable
    private static func answer(_ request: OriginRequest) -> OriginResponse {
        OriginResponse(
            .generated(.gif, byteCount: 10_000, seed: 1),
            fields: ["Cache-Control: max-age=86400"])
    }

    /// Requests every image once.
    private func fill(_ node: NodeProcess, from origin: ScriptedOrigin) throws {
        let connection = try node.connect()
        for image in 0..<images {
            let response = try connection.get(Self.target(origin.port, "\(image)"))
            guard response.status == 200, response.isWhole else {
                throw BenchError(description: "the node does not serve: \(response)")
            }
        }
    }

    private static func request(_ target: String) -> [UInt8] {
        HTTPConnection.request(target, host: "bench")
    }

    private static func target(_ origin: Int, _ name: String) -> String {
        ImageRequestTarget.forURL("http://127.0.0.1:\(origin)/\(name)")
    }

    private func measure(
        _ port: Int, origin: Int, dead: Int, bystander: Int, on loop: any EventLoop
    ) async throws {
        let images = images
        let hits = try await ConstantRateLoad.make(
            on: loop, to: port, interval: 1_000_000_000 / UInt64(hits), connectionsMax: 64
        ) { Self.request(Self.target(origin, "\($0 * 7919 % images)")) }
        let misses = try await ConstantRateLoad.make(
            on: loop, to: port, interval: 1_000_000_000 / UInt64(misses), connectionsMax: 4000
        ) { Self.request(Self.target(dead, "miss-\($0)")) }
        let others = try await ConstantRateLoad.make(
            on: loop, to: bystander, interval: 1_000_000_000 / UInt64(self.misses),
            connectionsMax: 4000
        ) { Self.request("/\($0)") }
        var slices = StormSlices()
        for _ in 1...rounds {
            slices.quiet.append(try await hits.run(seconds).get())
            let aside = others.run(seconds)
            slices.control.append(try await hits.run(seconds).get())
            _ = try await aside.get()
            let storm = misses.run(seconds)
            slices.underLoad.append(try await hits.run(seconds).get())
            slices.misses.append(try await storm.get())
        }
        slices.report()
        for load in [hits, misses, others] { try await load.close() }
    }
}
