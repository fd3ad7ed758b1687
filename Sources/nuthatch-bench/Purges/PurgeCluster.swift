import Foundation
import NIOCore
import NIOPosix

/// Nodes of one cluster on this machine, ended with it.
final class PurgeCluster {
    private var nodes: [BenchNode] = []
    private let firstPort: Int

    init(_ count: Int, below directory: URL, firstPort: Int) throws {
        self.firstPort = firstPort
        let secret = directory.appendingPathComponent("secret")
        try Data(repeating: UInt8(ascii: "s"), count: 32).write(to: secret)
        for index in 0..<count {
            let seeds = (0..<2).flatMap { ["--join", "127.0.0.1:\(firstPort + 3 * $0 + 2)"] }
            nodes.append(
                try BenchNode(
                    [
                        "--peer-listen", "127.0.0.1:\(firstPort + 3 * index + 2)",
                        "--cluster-secret-file", secret.path,
                        "--cache-dir", directory.appendingPathComponent("node-\(index)").path,
                        "--disk-limit", "2GiB",
                    ] + seeds,
                    port: port(index), adminPort: adminPort(index)))
        }
    }

    func port(_ index: Int) -> Int { firstPort + 3 * index }
    private func adminPort(_ index: Int) -> Int { firstPort + 3 * index + 1 }
    var adminPorts: [Int] { nodes.indices.map(adminPort) }

    func stop() {
        for node in nodes { node.stop() }
    }

    struct NotWhole: Error, CustomStringConvertible {
        let description = "the nodes have not found each other within a minute"
    }

    /// Returns when purges at each node were confirmed by all.
    func waitUntilWhole(on group: MultiThreadedEventLoopGroup) async throws {
        for _ in 0..<120 {
            let load = PurgeLoad(
                rate: nodes.count, seconds: 1, ports: adminPorts, members: nodes.count)
            if let tally = try? await load.run(on: group), tally.isClean { return }
            try await group.any().scheduleTask(in: .milliseconds(500)) {}.futureResult.get()
        }
        throw NotWhole()
    }
}
