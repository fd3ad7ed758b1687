package import Ground

/// From one counted set to the next.
extension CountedMembers {
    /// Takes over what somebody else knows to be decided, if it is news.
    mutating func follow(_ theirs: CountStanding, isNewborn: Bool, now: Instant) {
        guard let ours = standing else { return adopt(theirs, now: now) }
        guard ours.set.line.recovery == theirs.set.line.recovery else {
            guard ours.set.line.recovery < theirs.set.line.recovery else { return }
            contradiction = nil
            return adopt(theirs, now: now)
        }
        guard ours.set.opener == theirs.set.opener else {
            return meet(theirs, isNewborn: isNewborn, now: now)
        }
        if ours.set.generation < theirs.set.generation {
            adopt(theirs, now: now)
        } else if ours.set.generation == theirs.set.generation {
            guard ours.set == theirs.set else {
                contradiction = contradiction ?? .twoSets(ours.set, theirs.set)
                return
            }
            if theirs.isSettled { learnSettled(theirs.set, now: now) }
        }
    }

    /// Two clusters meet: one that is nobody but its opener gives itself up.
    private mutating func meet(_ theirs: CountStanding, isNewborn: Bool, now: Instant) {
        guard let ours = standing?.set else { return }
        switch (self.isNewborn, isNewborn) {
        case (false, false):
            contradiction = contradiction ?? .twoClusters(ours, theirs.set)
        case (true, false): adopt(theirs, now: now)
        case (false, true): return
        case (true, true):
            if theirs.set.opener < ours.opener { adopt(theirs, now: now) }
        }
    }

    mutating func adopt(_ next: CountStanding, now: Instant) {
        let isNextStep =
            next.set.line == standing?.set.line
            && next.set.generation == (standing?.set.generation ?? 0) + 1
        if isNextStep, let settledAt {
            since = settledAt
            before = standing?.set
        } else {
            since = now
            before = next.previous
        }
        settledAt = next.isSettled ? now : nil
        adoptedAt = now
        standing = next
        promised = nil
        voted = nil
        attempt = nil
        hasRepeatedVote = false
        dropOldRecords()
        recallOwn()
    }

    /// Counts the votes; a change that a majority has voted for in one ballot is in force.
    mutating func decide(now: Instant) {
        if let set = standing?.set {
            for cast in votes(on: set) {
                guard let vote = cast.first, let change = vote.vote?.change,
                    set.isMajority(cast.map(\.member), without: vote.ballot.without),
                    let next = set.changed(by: change)
                else { continue }
                adopt(CountStanding(next, after: set), now: now)
                break
            }
        }
        settle(now: now)
    }

    /// By ballot.
    private func votes(on base: CountedSet) -> [[CountRecord]] {
        let votes = records.filter { $0.base == base && $0.vote != nil }
        return Set(votes.map(\.ballot)).sorted().map { ballot in
            votes.filter { $0.ballot == ballot }
        }
    }

    /// Learns for itself that the set is settled; members in `gone` do not run, by the operator's
    /// word, and will be forgotten next by a majority of the others.
    ///
    /// It is once votes of one ballot, by a majority of the set before, name nothing that a
    /// majority of the set has not synced. Others in that ballot may name what is lost.
    package mutating func settle(without gone: [NodeID] = [], now: Instant) {
        guard let standing, let base = standing.previous else { return }
        let holders = standing.set.members.filter { !gone.contains($0) }
        var common: [ProcessID: UInt64] = [:]
        /// How far a majority is in a stream.
        func count(of process: ProcessID) -> UInt64 {
            if let count = common[process] { return count }
            let counts = holders.map { holdings[$0]?.count(of: process) ?? 0 }.sorted(by: >)
            let count = counts.isEmpty ? 0 : counts[counts.count / 2]
            common[process] = count
            return count
        }
        let isSettled = votes(on: base).contains { cast in
            let held = cast.filter { record in
                guard case .vote(_, let holds) = record.body else { return false }
                return holds.allSatisfy { $0.count <= count(of: $0.process) }
            }
            return base.isMajority(held.map(\.member), without: cast[0].ballot.without)
        }
        if isSettled { learnSettled(standing.set, now: now) }
    }

    mutating func learnSettled(_ set: CountedSet, now: Instant) {
        guard standing?.set == set, standing?.isSettled == false else { return }
        standing?.previous = nil
        settledAt = now
        dropOldRecords()
    }
}
