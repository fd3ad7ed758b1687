package import Ground

/// Transitions from one voter set to the next.
extension VoterSetConsensus {
    /// Adopts a configuration that another node knows to be decided, if it is newer.
    ///
    /// The lineage with more recoveries is newer, then the higher generation. Two sets of one
    /// generation, or two clusters that have both grown, are a ``conflict``; `isNewCluster` is true
    /// if theirs is still a founder alone without a vote.
    mutating func adoptIfNewer(_ theirs: VoterConfiguration, isNewCluster: Bool, now: Instant) {
        guard let ours = configuration else { return adopt(theirs, now: now) }
        guard ours.set.lineage.recovery == theirs.set.lineage.recovery else {
            guard ours.set.lineage.recovery < theirs.set.lineage.recovery else { return }
            conflict = nil
            return adopt(theirs, now: now)
        }
        guard ours.set.founder == theirs.set.founder else {
            return resolveForeignCluster(theirs, isNewCluster: isNewCluster, now: now)
        }
        if ours.set.generation < theirs.set.generation {
            adopt(theirs, now: now)
        } else if ours.set.generation == theirs.set.generation {
            guard ours.set == theirs.set else {
                conflict = conflict ?? .conflictingVoterSets(ours.set, theirs.set)
                return
            }
            if theirs.isSettled { markSettled(theirs.set, now: now) }
        }
    }

    /// Resolves the meeting of two clusters: a lone founder gives up, of two the one of higher id.
    private mutating func resolveForeignCluster(
        _ theirs: VoterConfiguration, isNewCluster: Bool, now: Instant
    ) {
        guard let ours = configuration?.set else { return }
        switch (self.isNewCluster, isNewCluster) {
        case (false, false):
            conflict = conflict ?? .separateClusters(ours, theirs.set)
        case (true, false): adopt(theirs, now: now)
        case (false, true): return
        case (true, true):
            if theirs.set.founder < ours.founder { adopt(theirs, now: now) }
        }
    }

    /// Follows `next` from now on; drops this node's votes and proposal, and the records on sets
    /// other than `next` and, unless that is settled, the one before.
    mutating func adopt(_ next: VoterConfiguration, now: Instant) {
        let isNextStep =
            next.set.lineage == configuration?.set.lineage
            && next.set.generation == (configuration?.set.generation ?? 0) + 1
        if isNextStep, let settledAt {
            jointSince = settledAt
            previousSet = configuration?.set
        } else {
            jointSince = now
            previousSet = next.previous
        }
        settledAt = next.isSettled ? now : nil
        adoptedAt = now
        configuration = next
        promisedBallot = nil
        acceptedVote = nil
        proposal = nil
        hasRepeatedVote = false
        dropOldRecords()
        restoreOwnVotes()
    }

    /// Adopts a change that has a majority in one ballot; then checks whether the set is settled.
    mutating func tallyVotes(now: Instant) {
        if let set = configuration?.set {
            for cast in votes(on: set) {
                guard let vote = cast.first, let change = vote.vote?.change,
                    set.isMajority(cast.map(\.member), excluding: vote.ballot.excluded),
                    let next = set.applying(by: change)
                else { continue }
                adopt(VoterConfiguration(next, after: set), now: now)
                break
            }
        }
        updateSettled(now: now)
    }

    /// Returns the votes on `base`, grouped and sorted by ballot.
    private func votes(on base: VoterSet) -> [[ConsensusRecord]] {
        let votes = records.filter { $0.base == base && $0.vote != nil }
        return Set(votes.map(\.ballot)).sorted().map { ballot in
            votes.filter { $0.ballot == ballot }
        }
    }

    /// Marks the set as settled if the known votes and positions prove it.
    ///
    /// It is settled once votes of one ballot, by a majority of the set before, name nothing that a
    /// majority of the set has not synced. Other votes of that ballot may name records that are
    /// lost.
    ///
    /// - Parameters:
    ///   - lost: Members that do not run, by order of the operator; a majority of the others
    ///     removes them next.
    ///   - now: The current time.
    package mutating func updateSettled(excluding lost: [NodeID] = [], now: Instant) {
        guard let configuration, let base = configuration.previous else { return }
        let holders = configuration.set.members.filter { !lost.contains($0) }
        var common: [ProcessID: UInt64] = [:]
        /// Returns how far a majority of the holders is in a stream.
        func count(of process: ProcessID) -> UInt64 {
            if let count = common[process] { return count }
            let counts = holders.map { syncedPositions[$0]?.count(of: process) ?? 0 }.sorted(by: >)
            let count = counts.isEmpty ? 0 : counts[counts.count / 2]
            common[process] = count
            return count
        }
        let isSettled = votes(on: base).contains { cast in
            let held = cast.filter { record in
                guard case .vote(_, let synced) = record.body else { return false }
                return synced.allSatisfy { $0.count <= count(of: $0.process) }
            }
            return base.isMajority(held.map(\.member), excluding: cast[0].ballot.excluded)
        }
        if isSettled { markSettled(configuration.set, now: now) }
    }

    /// Marks `set` as settled if it is the current one.
    mutating func markSettled(_ set: VoterSet, now: Instant) {
        guard configuration?.set == set, configuration?.isSettled == false else { return }
        configuration?.previous = nil
        settledAt = now
        dropOldRecords()
    }
}
