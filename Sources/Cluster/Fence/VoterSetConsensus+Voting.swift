package import Ground

/// This node's votes and proposals.
extension VoterSetConsensus {
    /// The set that may be changed: settled, without a conflict, and with this node as a voter.
    private var changeableSet: VoterSet? {
        guard let configuration, configuration.isSettled, hasJoined, conflict == nil, isVoter else {
            return nil
        }
        return configuration.set
    }

    /// True if there is a proposal or any record on the set; otherwise
    /// ``vote(synced:isCurrent:records:)`` has no effect.
    package var isVoteDue: Bool { proposal != nil || !records.isEmpty }

    /// Issues the promises, votes and proposal records that are due; none unless this node has
    /// joined as a voter of a settled set and found no conflict.
    ///
    /// - Parameters:
    ///   - synced: The positions synced at this moment.
    ///   - isCurrent: True while the fence is open; while it is closed only the operator's
    ///     proposals go on.
    ///   - output: Receives the records.
    package mutating func vote(
        synced: [StreamPosition], isCurrent: Bool, records output: inout [ConsensusRecord]
    ) {
        guard let set = changeableSet else { return }
        if let proposal, !proposal.isOperatorOrdered, !isCurrent { self.proposal = nil }
        propose(on: set, synced: synced, issue: &output)
        let owners = records.filter { $0.base == set && $0.ballot.proposer == $0.member }
        let requested = owners.filter(\.isPromise).map(\.ballot)
        if let ballot = requested.max(), promisedBallot.map({ $0 < ballot }) ?? true {
            promise(ballot, on: set, issue: &output)
        }
        let proposals = owners.compactMap(\.vote)
        guard let proposal = proposals.max(by: { $0.ballot < $1.ballot }) else { return }
        guard promisedBallot.map({ $0 <= proposal.ballot }) ?? true else { return }
        castVote(proposal, on: set, synced: synced, issue: &output)
    }

    /// Promises to vote in no ballot below `ballot`, and names the highest vote so far.
    private mutating func promise(
        _ ballot: Ballot, on set: VoterSet, issue: inout [ConsensusRecord]
    ) {
        promisedBallot = ballot
        issue.append(
            ConsensusRecord(
                base: set, member: own, ballot: ballot, body: .promise(voted: acceptedVote)))
    }

    /// Votes, unless this node has voted in that ballot already or the change does not fit the set.
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

    /// Votes for the proposal once a majority has promised.
    ///
    /// The vote is for the change of the highest earlier vote among the promises, which may be
    /// decided; else for the proposed change.
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

    /// Returns when this node repeats its vote for the change that made its set, unless that is
    /// settled by then; `nil` if it does not.
    ///
    /// A node that read the votes may have lost them before they were synced there, and a voter may
    /// have lost its directory. Then all nodes know the set from other nodes and none knows what
    /// settles it.
    package func repeatVoteDeadline(after timeout: Interval) -> Instant? {
        guard let previous = configuration?.previous, previous.contains(own), hasJoined,
            conflict == nil, !hasRepeatedVote
        else { return nil }
        return adoptedAt + timeout
    }

    /// Votes again for the change that made the unsettled set, in a ballot that has no proposer and
    /// is lower than all others; has no effect if the set is settled or the vote is already known.
    ///
    /// The change is already decided, so this can decide no other. What the voters have synced by
    /// now serves as well as what they had then, because they follow the set.
    package mutating func repeatVote(
        synced: [StreamPosition], records output: inout [ConsensusRecord]
    ) {
        guard let set = configuration?.set, let previous = configuration?.previous else { return }
        hasRepeatedVote = true
        let isSynced = records.contains {
            $0.member == own && $0.base == previous && $0.ballot.isRepeated
        }
        guard !isSynced, let change = previous.change(to: set) else { return }
        var removed: [NodeID] = []
        if case .remove(let nodes) = change, previous.quorumsIntersect(excludingCount: nodes.count)
        {
            removed = nodes
        }
        output.append(
            ConsensusRecord(
                base: previous, member: own, ballot: Ballot(repeatingExcluding: removed),
                body: .vote(change, synced: synced)))
    }

    /// Starts a proposal by requesting promises, in a ballot that no node has used.
    ///
    /// - Parameters:
    ///   - change: The proposed change; nothing happens if it does not fit the set, or that cannot
    ///     be changed now.
    ///   - excluding: The members that majorities are counted without, as in ``Ballot/excluded``.
    ///   - end: When the proposal expires.
    ///   - output: Receives the promise.
    package mutating func startProposal(
        _ change: VoterSetChange, excluding: [NodeID] = [], until end: Instant,
        records output: inout [ConsensusRecord]
    ) {
        guard let set = changeableSet, set.applying(by: change) != nil else { return }
        let used = records.filter { $0.base == set }.map(\.ballot.round).max() ?? 0
        let round = max(used, promisedBallot?.round ?? 0) + 1
        let ballot = Ballot(round: round, proposer: own, excluding: excluding)
        proposal = Proposal(
            ballot: ballot, change: change, deadline: end, isOperatorOrdered: !excluding.isEmpty)
        promise(ballot, on: set, issue: &output)
    }

    /// Drops the proposal once its deadline has passed.
    mutating func expireProposal(at now: Instant) {
        if let proposal, proposal.deadline <= now { self.proposal = nil }
    }

    /// The change with the highest vote that is not decided, which any node should complete; or
    /// `nil`.
    var undecidedChange: VoterSetChange? {
        let votes = records.filter { $0.base == configuration?.set }.compactMap(\.vote)
        return votes.max { $0.ballot < $1.ballot }?.change ?? acceptedVote?.change
    }
}
