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
        needs = nil
        promised = nil
        voted = nil
        attempt = nil
        hasRepeatedVote = false
        dropOldRecords()
        recallOwn()
    }

    /// Counts the votes; a change that a majority has voted for in one ballot is in force.
    mutating func decide(now: Instant) {
        guard let standing else { return }
        let base = standing.previous ?? standing.set
        let votes = records.filter { $0.base == base && $0.vote != nil }
        for ballot in Set(votes.map(\.ballot)).sorted() {
            let cast = votes.filter { $0.ballot == ballot }
            guard base.isMajority(cast.map(\.member), without: ballot.without),
                let change = cast.first?.vote?.change, let next = base.changed(by: change)
            else { continue }
            if base == standing.set { adopt(CountStanding(next, after: base), now: now) }
            guard next == self.standing?.set else { continue }
            var named = KnownPositions()
            for case .vote(_, let holds) in cast.map(\.body) { named.take(holds) }
            needs = named
            return settle(now: now)
        }
    }

    /// Learns for itself that the set is settled; members in `gone` do not run, by the operator's
    /// word, and will be forgotten next by a majority of the others.
    package mutating func settle(without gone: [NodeID] = [], now: Instant) {
        guard let standing, !standing.isSettled, let needs else { return }
        let wanted = needs.positions
        let holders = standing.set.members.filter { member in
            holdings[member]?.covers(wanted) ?? wanted.isEmpty
        }
        if standing.set.isMajority(holders, without: gone) { learnSettled(standing.set, now: now) }
    }

    mutating func learnSettled(_ set: CountedSet, now: Instant) {
        guard standing?.set == set, standing?.isSettled == false else { return }
        standing?.previous = nil
        settledAt = now
        needs = nil
        dropOldRecords()
    }
}
