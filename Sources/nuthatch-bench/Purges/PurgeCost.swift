import Foundation
import Harness

/// What the nodes of a cluster have spent so far, all of them together.
struct PurgeCost {
    private var cpuSeconds = 0.0
    private var frames = 0.0
    private var bytes = 0.0
    private var syncs = 0.0

    /// As the kernel and their metrics say at this moment.
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

    /// Like `850 µs of CPU, 5.2 frames and 1,310 bytes between nodes, 2.1 syncs`.
    func text(by purges: Int) -> String {
        func share(_ value: Double, _ decimals: Int) -> String {
            String(format: "%.\(decimals)f", value / Double(purges))
        }
        return "\(share(cpuSeconds * 1e6, 0)) µs of CPU, \(share(frames, 2)) frames and "
            + "\(share(bytes, 0)) bytes between nodes, \(share(syncs, 2)) syncs"
    }
}
