import Cluster
import Ground
import Serving
import Tiers

extension InvalidationSimulation {
    /// Serves an entry at this instant, to a client or a peer.
    mutating func serve(
        _ entry: SimulatedEntry, isFresh: Bool, _ index: Int, _ waiter: SimulatedFetch.Waiter
    ) {
        guard case .peer(let other, let ask) = waiter else {
            return check(entry, isFresh: isFresh, index)
        }
        let reply = EntryReply.held(
            version: entry.contentVersion, freshFor: entry.freshUntil - clock(index),
            validationAge: clock(index) - entry.validatedAt)
        send(.response(ask, reply), from: index, to: other)
    }

    mutating func check(_ entry: SimulatedEntry, isFresh: Bool, _ index: Int) {
        reads += 1
        if isQuiescent { quiescentReads[entry.key] += 1 }
        trace.add(UInt64(entry.key) << 32 | UInt64(entry.contentVersion))
        let node = nodes[index]
        let isCurrent = node.replication?.window.isCurrent(at: clock(index)) ?? false
        let isCounted = oracle.decidedSets.last?.contains(node.id) ?? false
        let reader = InvalidationOracle.ReadContext(
            process: node.process, applied: node.applied, isBound: isCurrent || isCounted)
        let fault = oracle.violation(
            key: entry.key, version: entry.contentVersion, isFresh: isFresh, by: reader, at: now)
        guard let fault else { return }
        let current = oracle.version(of: entry.key)
        let version = entry.invalidationVersion
        fail(
            "node \(index) served key \(entry.key) version \(entry.contentVersion) of \(current), "
                + "version \(version.epoch).\(version.count), current \(isCurrent), "
                + "counted \(isCounted): \(fault)")
    }

    /// Returns true if every later invalidation can cover the entry.
    func isPurgeable(_ entry: SimulatedEntry, _ index: Int) -> Bool {
        entry.invalidationVersion <= nodes[index].invalidationVersion
    }

    mutating func checkStamp(_ entry: SimulatedEntry, _ index: Int) {
        if !isPurgeable(entry, index) {
            fail("node \(index) holds key \(entry.key), which can no longer be purged")
        }
    }
}
