package import Ground

/// This node's votes, and its attempts to have others vote.
extension CountedMembers {
    /// Nobody changes a set that is not settled, or that contradicts another.
    private var changeableSet: CountedSet? {
        guard let standing, standing.isSettled, hasJoined, contradiction == nil, isCounted else {
            return nil
        }
        return standing.set
    }

    /// There are records on the set, or an attempt: else nobody is to be answered.
    package var isVoteDue: Bool { attempt != nil || !records.isEmpty }

    /// Writes what is due: promises, votes, and what this node's attempt needs next.
    ///
    /// `synced` is of this moment. While the fence is closed (not `isCurrent`) only the operator
    /// attempts anything.
    package mutating func vote(
        synced: [StreamPosition], isCurrent: Bool, issue: inout [CountRecord]
    ) {
        guard let set = changeableSet else { return }
        if let attempt, !attempt.isOperators, !isCurrent { self.attempt = nil }
        propose(on: set, synced: synced, issue: &issue)
        let owners = records.filter { $0.base == set && $0.ballot.owner == $0.member }
        let calls = owners.filter(\.isPromise).map(\.ballot)
        if let call = calls.max(), promised.map({ $0 < call }) ?? true {
            promise(call, on: set, issue: &issue)
        }
        let proposals = owners.compactMap(\.vote)
        guard let proposal = proposals.max(by: { $0.ballot < $1.ballot }) else { return }
        guard promised.map({ $0 <= proposal.ballot }) ?? true else { return }
        give(proposal, on: set, synced: synced, issue: &issue)
    }

    private mutating func promise(
        _ ballot: CountBallot, on set: CountedSet, issue: inout [CountRecord]
    ) {
        promised = ballot
        issue.append(
            CountRecord(base: set, member: own, ballot: ballot, body: .promise(voted: voted)))
    }

    private mutating func give(
        _ vote: CountVote, on set: CountedSet, synced: [StreamPosition],
        issue: inout [CountRecord]
    ) {
        guard voted?.ballot != vote.ballot, set.changed(by: vote.change) != nil else { return }
        promised = vote.ballot
        voted = vote
        issue.append(
            CountRecord(
                base: set, member: own, ballot: vote.ballot,
                body: .vote(vote.change, holds: synced)))
    }

    /// Once a majority has promised: what one of them may have helped to decide, or else the wish.
    private mutating func propose(
        on set: CountedSet, synced: [StreamPosition], issue: inout [CountRecord]
    ) {
        guard let attempt, promised == attempt.ballot, voted?.ballot != attempt.ballot else {
            return
        }
        let promises = records.filter {
            $0.base == set && $0.ballot == attempt.ballot && $0.isPromise
        }
        guard set.isMajority(promises.map(\.member), without: attempt.ballot.without) else {
            return
        }
        var earlier: CountVote?
        for case .promise(let voted?) in promises.map(\.body)
        where earlier.map({ $0.ballot < voted.ballot }) ?? true {
            earlier = voted
        }
        let change = earlier?.change ?? attempt.wish
        let vote = CountVote(ballot: attempt.ballot, change: change)
        give(vote, on: set, synced: synced, issue: &issue)
    }

    /// When this node votes again for the change that made its set, unless that is settled by then.
    ///
    /// Whoever has read the votes may have lost them before they were synced there, and a voter its
    /// directory: then all know the set from somebody's word, and nobody what settles it.
    package func voteIsRepeated(after patience: Interval) -> Instant? {
        guard let previous = standing?.previous, previous.contains(own), hasJoined,
            contradiction == nil, !hasRepeatedVote
        else { return nil }
        return adoptedAt + patience
    }

    /// Votes again, in a ballot that is nobody's and lower than all others.
    ///
    /// The change is decided, so no other could be by this; and what the voters have synced by now
    /// is as good as what they had, for they follow the set.
    package mutating func repeatVote(synced: [StreamPosition], issue: inout [CountRecord]) {
        guard let set = standing?.set, let previous = standing?.previous else { return }
        hasRepeatedVote = true
        let isSynced = records.contains {
            $0.member == own && $0.base == previous && $0.ballot.isRepeated
        }
        guard !isSynced, let change = previous.change(to: set) else { return }
        var gone: [NodeID] = []
        if case .forget(let nodes) = change, previous.isKnown(without: nodes.count) { gone = nodes }
        issue.append(
            CountRecord(
                base: previous, member: own, ballot: CountBallot(repeatingWithout: gone),
                body: .vote(change, holds: synced)))
    }

    /// Calls for promises, in a ballot that nobody has used; `without` as in ``CountBallot``.
    package mutating func attempt(
        _ wish: CountChange, without: [NodeID] = [], until end: Instant,
        issue: inout [CountRecord]
    ) {
        guard let set = changeableSet, set.changed(by: wish) != nil else { return }
        let used = records.filter { $0.base == set }.map(\.ballot.round).max() ?? 0
        let round = max(used, promised?.round ?? 0) + 1
        let ballot = CountBallot(round: round, owner: own, without: without)
        attempt = Attempt(ballot: ballot, wish: wish, endsAt: end, isOperators: !without.isEmpty)
        promise(ballot, on: set, issue: &issue)
    }

    mutating func endAttempt(at now: Instant) {
        if let attempt, attempt.endsAt <= now { self.attempt = nil }
    }

    /// What somebody has voted for and is not decided: to be finished by whoever can.
    var unfinished: CountChange? {
        let votes = records.filter { $0.base == standing?.set }.compactMap(\.vote)
        return votes.max { $0.ballot < $1.ballot }?.change ?? voted?.change
    }
}
