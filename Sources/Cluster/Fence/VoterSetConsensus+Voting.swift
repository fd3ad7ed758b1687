package import Ground

/// This node's votes, and its attempts to have others vote.
extension VoterSetConsensus {
    /// Nobody changes a set that is not settled, or that contradicts another.
    private var changeableSet: VoterSet? {
        guard let configuration, configuration.isSettled, hasJoined, conflict == nil, isVoter else {
            return nil
        }
        return configuration.set
    }

    /// There are records on the set, or an attempt: else nobody is to be answered.
    package var isVoteDue: Bool { proposal != nil || !records.isEmpty }

    /// Writes what is due: promises, votes, and what this node's attempt needs next.
    ///
    /// `synced` is of this moment. While the fence is closed (not `isCurrent`) only the operator
    /// attempts anything.
    package mutating func vote(
        synced: [StreamPosition], isCurrent: Bool, records output: inout [ConsensusRecord]
    ) {
        guard let set = changeableSet else { return }
        if let proposal, !proposal.isOperatorOrdered, !isCurrent { self.proposal = nil }
        propose(on: set, synced: synced, issue: &output)
        let owners = records.filter { $0.base == set && $0.ballot.proposer == $0.member }
        let calls = owners.filter(\.isPromise).map(\.ballot)
        if let call = calls.max(), promisedBallot.map({ $0 < call }) ?? true {
            promise(call, on: set, issue: &output)
        }
        let proposals = owners.compactMap(\.vote)
        guard let proposal = proposals.max(by: { $0.ballot < $1.ballot }) else { return }
        guard promisedBallot.map({ $0 <= proposal.ballot }) ?? true else { return }
        castVote(proposal, on: set, synced: synced, issue: &output)
    }

    private mutating func promise(
        _ ballot: Ballot, on set: VoterSet, issue: inout [ConsensusRecord]
    ) {
        promisedBallot = ballot
        issue.append(
            ConsensusRecord(
                base: set, member: own, ballot: ballot, body: .promise(voted: acceptedVote)))
    }

    private mutating func castVote(
        _ vote: Vote, on set: VoterSet, synced: [StreamPosition],
        issue: inout [ConsensusRecord]
    ) {
        guard acceptedVote?.ballot != vote.ballot, set.applying(by: vote.change) != nil else {
            return
        }
        promisedBallot = vote.ballot
        acceptedVote = vote
        issue.append(
            ConsensusRecord(
                base: set, member: own, ballot: vote.ballot,
                body: .vote(vote.change, synced: synced)))
    }

    /// Once a majority has promised: what one of them may have helped to decide, or else the wish.
    private mutating func propose(
        on set: VoterSet, synced: [StreamPosition], issue: inout [ConsensusRecord]
    ) {
        guard let proposal, promisedBallot == proposal.ballot,
            acceptedVote?.ballot != proposal.ballot
        else {
            return
        }
        let promises = records.filter {
            $0.base == set && $0.ballot == proposal.ballot && $0.isPromise
        }
        guard set.isMajority(promises.map(\.member), excluding: proposal.ballot.excluded) else {
            return
        }
        var earlier: Vote?
        for case .promise(let voted?) in promises.map(\.body)
        where earlier.map({ $0.ballot < voted.ballot }) ?? true {
            earlier = voted
        }
        let change = earlier?.change ?? proposal.change
        let vote = Vote(ballot: proposal.ballot, change: change)
        castVote(vote, on: set, synced: synced, issue: &issue)
    }

    /// When this node votes again for the change that made its set, unless that is settled by then.
    ///
    /// Whoever has read the votes may have lost them before they were synced there, and a voter its
    /// directory: then all know the set from somebody's word, and nobody what settles it.
    package func repeatVoteDeadline(after patience: Interval) -> Instant? {
        guard let previous = configuration?.previous, previous.contains(own), hasJoined,
            conflict == nil, !hasRepeatedVote
        else { return nil }
        return adoptedAt + patience
    }

    /// Votes again, in a ballot that is nobody's and lower than all others.
    ///
    /// The change is decided, so no other could be by this; and what the voters have synced by now
    /// is as good as what they had, for they follow the set.
    package mutating func repeatVote(
        synced: [StreamPosition], records output: inout [ConsensusRecord]
    ) {
        guard let set = configuration?.set, let previous = configuration?.previous else { return }
        hasRepeatedVote = true
        let isSynced = records.contains {
            $0.member == own && $0.base == previous && $0.ballot.isRepeated
        }
        guard !isSynced, let change = previous.change(to: set) else { return }
        var gone: [NodeID] = []
        if case .remove(let nodes) = change, previous.quorumsIntersect(excludingCount: nodes.count)
        {
            gone = nodes
        }
        output.append(
            ConsensusRecord(
                base: previous, member: own, ballot: Ballot(repeatingExcluding: gone),
                body: .vote(change, synced: synced)))
    }

    /// Calls for promises, in a ballot that nobody has used; `without` as in ``Ballot``.
    package mutating func startProposal(
        _ wish: VoterSetChange, excluding: [NodeID] = [], until end: Instant,
        records output: inout [ConsensusRecord]
    ) {
        guard let set = changeableSet, set.applying(by: wish) != nil else { return }
        let used = records.filter { $0.base == set }.map(\.ballot.round).max() ?? 0
        let round = max(used, promisedBallot?.round ?? 0) + 1
        let ballot = Ballot(round: round, proposer: own, excluding: excluding)
        proposal = Proposal(
            ballot: ballot, change: wish, deadline: end, isOperatorOrdered: !excluding.isEmpty)
        promise(ballot, on: set, issue: &output)
    }

    mutating func expireProposal(at now: Instant) {
        if let proposal, proposal.deadline <= now { self.proposal = nil }
    }

    /// What somebody has voted for and is not decided: to be finished by whoever can.
    var undecidedChange: VoterSetChange? {
        let votes = records.filter { $0.base == configuration?.set }.compactMap(\.vote)
        return votes.max { $0.ballot < $1.ballot }?.change ?? acceptedVote?.change
    }
}
