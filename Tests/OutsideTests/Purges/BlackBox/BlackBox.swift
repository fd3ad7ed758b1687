import Foundation
import Harness

/// A cluster under faults that is judged only by its responses.
///
/// The images of its origin change, clients purge and read, and a fault injector cuts connections,
/// stops and kills processes, and removes or restores cache directories.
final class BlackBox {
    /// A fault of a node.
    enum Fault: String, CaseIterable, Sendable {
        case cutOff, cutOneWay, standstill, kill
        /// Stopped gracefully and started again.
        case leave
        /// Killed and started again with only its name: at once, or cut off from the others.
        case replace, replaceCutOff
        /// Started with an older copy of its directory.
        case putBack
    }

    /// The result of a run.
    struct Outcome: CustomStringConvertible {
        var violations: [String]
        var reads: Int
        var purges: Int
        var refused: Int
        var afterReceipts: Int
        var afterBounds: Int
        var faults: [Fault: Int]

        var description: String {
            let done = faults.map { "\($0.key.rawValue) \($0.value)" }.sorted()
            return "\(reads) reads, \(refused) of them refused, \(purges) purges, \(afterReceipts)"
                + " reads held against receipts, \(afterBounds) against bounds; \(done); "
                + "\(violations.prefix(3))"
        }
    }

    private let network: PeerNetwork
    private let clients: BlackBoxClients
    private let seed: UInt64
    private var faults: [Fault: Int] = [:]

    private static let fenceSeconds = 3.0

    init(nodes: Int, seed: UInt64) throws {
        self.seed = seed
        network = try PeerNetwork(nodes, "--fence", "\(Int(Self.fenceSeconds))s")
        clients = BlackBoxClients(network.origin, network.nodes)
    }

    /// Runs for this time, or until every fault was injected once, and repairs everything.
    func play(seconds: Double) throws -> Outcome {
        let end = BlackBoxClients.now() + seconds
        clients.start(seed: seed)
        var dice = SeededDice(seed)
        var round = 0
        while BlackBoxClients.now() < end || round < Fault.allCases.count {
            try harm(Fault.allCases[round % Fault.allCases.count], &dice)
            round += 1
        }
        let seen = clients.stop()
        return Outcome(
            violations: seen.violations, reads: seen.history.reads, purges: seen.purges,
            refused: seen.refused, afterReceipts: seen.history.held.confirmed,
            afterBounds: seen.history.held.bounded, faults: faults)
    }

    // MARK: Faults

    private func harm(_ fault: Fault, _ dice: inout SeededDice) throws {
        let node = dice.below(network.nodes.count)
        let others = network.nodes.indices.filter { $0 != node }
        faults[fault, default: 0] += 1
        switch fault {
        case .cutOff:
            try network.isolate(node)
            rest(Self.fenceSeconds * 2 + dice.unit() * 4)
            try network.heal()
        case .cutOneWay:
            try network.cut([node], from: others)
            rest(Self.fenceSeconds + dice.unit() * 4)
            try network.heal()
        case .standstill:
            network.nodes[node].pause()
            let from = BlackBoxClients.now()
            rest(Self.fenceSeconds + dice.unit() * 4)
            // Recorded before the node can send a response.
            let to = BlackBoxClients.now()
            clients.state.change { $0.history.stood(node, from: from, to: to) }
            network.nodes[node].resume()
        case .kill: try network.restart(node)
        case .leave:
            try network.end(node, isOrderly: true)
            try network.begin(node)
        case .replace:
            try network.end(node, loses: true)
            try network.begin(node)
        case .replaceCutOff:
            try network.isolate(node)
            try network.end(node, loses: true)
            try network.begin(node, waits: false)
            show()
            rest(Self.fenceSeconds + dice.unit() * 4)
            try network.heal()
            try network.nodes[node].waitUntilReady()
        case .putBack: try putBack(node)
        }
        show()
        rest(1 + dice.unit() * 2)
    }

    /// Gives the clients the nodes that run now.
    private func show() {
        let nodes = network.nodes
        clients.nodes.value = nodes
    }

    /// Restores a node's older directory: the node ends once it finds that the directory is older
    /// than its promises, and is started again.
    private func putBack(_ node: Int) throws {
        let (cache, copy) = (network.cache(node), network.cache(node).appendingPathExtension("old"))
        try network.end(node)
        try FileManager.default.copyItem(at: cache, to: copy)
        try network.begin(node)
        show()
        rest(2)
        try network.end(node, loses: true)
        try FileManager.default.moveItem(at: copy, to: cache)
        try network.begin(node, waits: false)
        show()
        let started = network.nodes[node]
        _ = Deadline.seconds(60).waitUntil {
            !started.isRunning || (try? started.connectAdmin().get("/readyz"))?.status == 200
        }
        if !started.isRunning { try network.begin(node) }
    }

    /// Waits this number of seconds.
    private func rest(_ seconds: Double) {
        Deadline.seconds(seconds).waitUntilPassed()
    }
}
