import Cluster
import Ground

/// Holds what one run's exchange says of itself against what an observer of all disks knows.
struct ReplicationChecker: Sendable {
    /// What the shell was told of the fence last.
    var window = FenceWindow(closedAt: .zero)
    /// What was found to be on the disk of what the exchange calls synced.
    private var proven = PositionVector()
    /// How many of the durable purges were found to be known, in the order in which they became
    /// durable.
    private var checkedCount = 0
    /// In which line of sets they were.
    private var line: VoterSetLineage?

    /// The law that the exchange of `node` breaks after an event; nil if none.
    mutating func violation(
        of node: SimulatedCacheNode, against truth: InvalidationOracle, now: Instant
    ) -> String? {
        guard let exchange = node.replication else { return nil }
        if window != exchange.window { return "a window that nobody was told of" }
        if let set = exchange.voterConfiguration?.set, !truth.isDecided(set) {
            return "follows \(set), which was not decided"
        }
        if line != exchange.voterConfiguration?.set.lineage {
            (line, checkedCount) = (exchange.voterConfiguration?.set.lineage, 0)
        }
        guard window.isCurrent(at: node.clock.reading(at: now)) else { return nil }
        while checkedCount < truth.durablePurges.count {
            let purge = truth.purges[truth.durablePurges[checkedCount]]
            guard let durableAt = purge.durableAt, durableAt + truth.fence <= now else { break }
            let isKnown =
                node.applied.contains(truth.durablePurges[checkedCount])
                || node.validated.covers(purge.name.position)
            guard isKnown || line != purge.line else {
                return "current without purge \(truth.durablePurges[checkedCount])"
            }
            checkedCount += 1
        }
        return nil
    }

    /// The same of what it calls synced; to be asked when a batch is, and at a start.
    mutating func unsyncedClaim(in node: SimulatedCacheNode) -> String? {
        let storage = node.storage
        let kept = PositionVector(storage.floors + storage.retired)
        for position in node.replication?.syncedPositions ?? [] where !proven.covers(position) {
            for number in (proven.count(of: position.process) + 1)...position.count {
                let name = RecordID(stream: position.process, number: number)
                guard storage.synced.contains(name) || kept.covers(name.position) else {
                    return "\(position) covers what is not synced"
                }
            }
            proven.merge([position])
        }
        return nil
    }
}
