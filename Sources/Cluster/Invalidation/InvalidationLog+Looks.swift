package import Ground

/// What operators want to know.
extension InvalidationLog {
    /// The purges that this node took in last, at most `countMax`, the newest first.
    package func lastPurges(_ countMax: Int) -> [RecordID] {
        var found: [(since: Instant, name: RecordID)] = []
        for stream in streams.streams {
            // Records of the count lie between them.
            let slots = stream.records.last(countMax) { !Invalidation.isConsensus($0) }
            found += slots.map {
                ($0.heldSince, RecordID(stream: stream.process, number: $0.number))
            }
        }
        found.sort {
            ($1.since, $1.name.stream, $1.name.number) < ($0.since, $0.name.stream, $0.name.number)
        }
        return found.prefix(countMax).map(\.name)
    }

    /// How many of this node's purges somebody who counts has yet to confirm, in reach or not.
    package var pendingReceiptCount: UInt64 {
        guard let place = streams.index(of: process) else { return 0 }
        let synced = streams[place].synced.prefix
        let others = members.voters.lazy.filter { $0 != node }
        let had = others.map { confirmations.count(of: process, by: $0) }.min() ?? synced
        guard had < synced else { return 0 }
        let ofCount = ownConsensusNumbers.count { $0 > had && $0 <= synced }
        return synced - had - UInt64(ofCount)
    }

    /// How many invalidations are synced here that `node` has not confirmed.
    package func lag(of node: NodeID) -> UInt64 {
        guard node != self.node else { return 0 }
        return syncedPositions.reduce(0) { sum, position in
            let had = confirmations.count(of: position.process, by: node)
            return sum + (position.count > had ? position.count - had : 0)
        }
    }
}
