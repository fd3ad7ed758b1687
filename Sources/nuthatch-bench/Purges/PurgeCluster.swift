import Foundation
import Harness

/// Nodes of one cluster on this machine, ended with it.
final class PurgeCluster {
    let nodes: [NodeProcess]

    /// Starts the nodes, and returns when each of them counts all.
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
