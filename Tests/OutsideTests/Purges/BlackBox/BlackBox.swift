import Foundation
import Harness

/// A cluster, an origin whose images change, clients that purge and read, and somebody who cuts
/// cables, stops processes and kills them; whoever looks at it sees nothing but answers.
final class BlackBox {
    /// What is done to nodes.
    enum Fault: String, CaseIterable, Sendable {
        case cutOff, cutOneWay, standstill, kill
    }

    /// What came of it.
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

    /// Plays it for so long, or until everything was done to some node, and mends everything.
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
            try network.cut([node], from: others)
            try network.cut(others, from: [node])
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
            // Known before it can answer anything.
            let to = BlackBoxClients.now()
            clients.state.change { $0.history.stood(node, from: from, to: to) }
            network.nodes[node].resume()
        case .kill:
            try network.restart(node)
            let nodes = network.nodes
            clients.nodes.value = nodes
        }
        rest(1 + dice.unit() * 2)
    }

    /// Lets so many seconds pass.
    private func rest(_ seconds: Double) {
        Deadline.seconds(seconds).pass()
    }
}
