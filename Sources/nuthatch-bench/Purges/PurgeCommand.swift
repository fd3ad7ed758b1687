import ArgumentParser
import Foundation
import Harness
import NIOCore
import NIOPosix

/// Measures purges at a constant rate on nodes of this machine, and their costs.
struct PurgeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Purges at a constant rate in a cluster on this machine; times the receipts.",
        discussion: """
            Starts the nodes itself, from the nuthatch program in the same directory. Purges go to \
            each node in turn; each waits for all; its time counts from when it was due, whether \
            or not a connection was free then. At the same time it times hits at one of the nodes, \
            one per millisecond, and writes of 256 bytes with fdatasync(2) on the same disk. The \
            cost of a purge is that of all nodes together, less what they and the hits cost \
            without purges.
            """)

    @Option(help: "Nodes.")
    var nodes = 5

    @Option(help: "Purges per second. May be repeated. Hits are first timed without purges.")
    var rate: [Int] = [1, 100, 5_000]

    @Option(help: "Targets of each request; the rate counts targets.")
    var targets = 1

    @Option(help: "Seconds of each rate.")
    var seconds = 10

    @Option(help: "Directory for the nodes' data; a new one below /tmp if not given.")
    var directory: String?

    func validate() throws {
        guard (1...64).contains(nodes), seconds > 0, (1...1_000).contains(targets),
            rate.allSatisfy({ $0 > 0 })
        else {
            throw ValidationError("no such number")
        }
    }

    func run() async throws {
        let place = URL(fileURLWithPath: directory ?? "/tmp/nuthatch-bench-purge-\(getpid())")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { if directory == nil { try? FileManager.default.removeItem(at: place) } }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        // The client's own work on purges must not delay its hits.
        let hitGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let fault: (any Error)?
        do {
            try await measure(in: place, group, hitGroup)
            fault = nil
        } catch {
            fault = error
        }
        try await hitGroup.shutdownGracefully()
        try await group.shutdownGracefully()
        if let fault { throw fault }
    }

    private func measure(
        in place: URL, _ group: MultiThreadedEventLoopGroup,
        _ hitGroup: MultiThreadedEventLoopGroup
    ) async throws {
        let (targets, seconds) = (targets, seconds)
        let cluster = try PurgeCluster(nodes, below: place)
        let origin = try ScriptedOrigin()
        let path = origin.serve(
            .generated(.png, byteCount: 10_000, seed: 1), fields: ["Cache-Control: max-age=86400"])
        let hits = HitProbe(
            node: cluster.nodes[nodes > 1 ? 1 : 0].port,
            target: ImageRequestTarget.forURL(origin.url(path)))
        let ports = cluster.nodes.map(\.adminPort)
        let loop = group.next()
        let first = PurgeCost(of: cluster)
        let still = try await hits.measure(for: seconds, on: hitGroup)
        let idle = PurgeCost(of: cluster) - first
        print("hits without purges: \(still.text)")
        for rate in rate {
            let synced = Sampler.measuringSyncs(in: place)
            let before = PurgeCost(of: cluster)
            async let answered = PurgeLoad.run(
                rate: rate, targets: targets, seconds: seconds, ports: ports, on: loop)
            let hit = try await hits.measure(for: seconds, on: hitGroup)
            let tally = try await answered
            let cost = PurgeCost(of: cluster) - before - idle
            print("\(rate) purges a second:")
            print("  receipts: \(tally.text)")
            print("  each: \(cost.text(by: rate * seconds))")
            print("  fdatasync: \(synced.stop().text)")
            print("  hits: \(hit.text); p99 \(hit.ratio(of: 0.99, to: still)) of that without")
        }
        withExtendedLifetime((cluster, origin)) {}
    }
}

/// The nodes of one cluster on this machine, which end with it.
final class PurgeCluster {
    let nodes: [NodeProcess]

    /// Starts the nodes, and returns when all are voters on each of them.
    init(_ count: Int, below directory: URL) throws {
        let secret = directory.appendingPathComponent("secret")
        try Data(repeating: UInt8(ascii: "s"), count: 32).write(to: secret)
        let peerPorts = try (0..<count).map { _ in try ReservedPort.forProcess() }
        let seeds = peerPorts.prefix(2).flatMap { ["--join", "127.0.0.1:\($0)"] }
        nodes = try NodeProcess.cluster(of: count) { index, waits in
            try NodeProcess(
                [
                    "--peer-listen", "127.0.0.1:\(peerPorts[index])",
                    "--cluster-secret-file", secret.path,
                    "--cache-dir", directory.appendingPathComponent("node-\(index)").path,
                    "--disk-limit", "2GiB", "--log-level", "warning",
                ] + seeds, waits: waits)
        }
        let nodes = nodes
        let isWhole = Deadline.seconds(60).waitUntil(every: 100) {
            nodes.allSatisfy { $0.isCurrent(among: count) }
        }
        guard isWhole else {
            throw BenchError(description: "the nodes have not found each other within a minute")
        }
    }
}

/// The resources used by all nodes of a cluster so far.
struct PurgeCost {
    private var cpuSeconds = 0.0
    private var frames = 0.0
    private var bytes = 0.0
    private var syncs = 0.0

    /// Reads the current figures of the kernel and the metrics.
    init(of cluster: PurgeCluster) {
        func sum(_ name: String) -> Double {
            cluster.nodes.reduce(0) { $0 + ($1.metric(name) ?? 0) }
        }
        cpuSeconds = cluster.nodes.reduce(0) {
            $0 + ((try? ProcessStatistics(of: $1.identifier))?.processorSeconds ?? 0)
        }
        frames = sum("nuthatch_peer_frames_sent_total")
        bytes = sum("nuthatch_peer_sent_bytes_total")
        syncs = sum("nuthatch_journal_syncs_total")
    }

    static func - (one: PurgeCost, other: PurgeCost) -> PurgeCost {
        var cost = one
        cost.cpuSeconds -= other.cpuSeconds
        cost.frames -= other.frames
        cost.bytes -= other.bytes
        cost.syncs -= other.syncs
        return cost
    }

    /// Returns the costs per purge, like `850 µs of CPU, 5.2 frames and 1,310 bytes between nodes,
    /// 2.1 syncs`.
    func text(by purges: Int) -> String {
        func share(_ value: Double, _ decimals: Int) -> String {
            String(format: "%.\(decimals)f", value / Double(purges))
        }
        return "\(share(cpuSeconds * 1e6, 0)) µs of CPU, \(share(frames, 2)) frames and "
            + "\(share(bytes, 0)) bytes between nodes, \(share(syncs, 2)) syncs"
    }
}
