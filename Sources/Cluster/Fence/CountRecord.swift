package import Ground

/// Orders the attempts at one change of the counted set; a later one finishes what an earlier one
/// may have decided.
package struct Ballot: Hashable, Comparable, Sendable {
    /// From 1; nobody uses one that he has seen.
    package var round: UInt64
    /// Who makes the attempt.
    package var proposer: NodeID
    /// Members that the operator says are gone for good, so that majorities are of the others.
    ///
    /// Empty but for the operator's word.
    package var excluded: [NodeID]

    /// The ballot of repeated votes, for a change that is decided; see
    /// ``VoterSetConsensus/repeatVote(synced:issue:)``.
    init(repeatingExcluding gone: [NodeID]) {
        self.init(round: 1, proposer: NodeID(low: 0, high: 0), excluding: gone)
    }

    /// The ballot is one of repeated votes: nobody's, and lower than all others.
    package var isRepeated: Bool { proposer == NodeID(low: 0, high: 0) }

    package init(round: UInt64, proposer: NodeID, excluding: [NodeID] = []) {
        self.round = round
        self.proposer = proposer
        self.excluded = excluding
    }

    package static func < (left: Ballot, right: Ballot) -> Bool {
        (left.round, left.proposer) < (right.round, right.proposer)
    }
}

/// A record of the log by which members agree on the next counted set; each writes its own into its
/// own stream, so that whoever reads it knows that it is synced there.
///
/// It is single-decree Paxos (Lamport, "Paxos Made Simple", 2001) for each generation, with the log
/// for its messages: an owner's first promise is the call for promises, its vote the proposal.
package struct ConsensusRecord: Hashable, Sendable {
    package enum Payload: Hashable, Sendable {
        /// This node follows this line of sets, and has left every other; `previous` as in
        /// ``VoterConfiguration``. The ballot's round numbers this node's joins; the last one
        /// holds.
        case joined(previous: VoterSet?)
        /// No lower ballot gets this node's vote; with the highest vote that it has given.
        case promise(voted: Vote?)
        /// For `change`, by a node that has synced `holds`.
        case vote(VoterSetChange, synced: [StreamPosition])
    }

    /// What is to be changed; it was decided and, except under ``StoredBody/joined``, is settled.
    package var base: VoterSet
    /// Whose word it is.
    package var member: NodeID
    package var ballot: Ballot
    package var body: Payload

    package init(base: VoterSet, member: NodeID, ballot: Ballot, body: Payload) {
        self.base = base
        self.member = member
        self.ballot = ballot
        self.body = body
    }

    var vote: Vote? {
        guard case .vote(let change, _) = body else { return nil }
        return Vote(ballot: ballot, change: change)
    }

    var isPromise: Bool {
        guard case .promise = body else { return false }
        return true
    }
}

/// A vote that was given.
package struct Vote: Hashable, Sendable {
    package var ballot: Ballot
    package var change: VoterSetChange

    package init(ballot: Ballot, change: VoterSetChange) {
        self.ballot = ballot
        self.change = change
    }
}

/// What a member says of the counted set with every answer and every confirmation.
///
/// Made at the same moment as the positions beside it.
package struct VoterSetView: Hashable, Sendable {
    /// Nil for a newcomer.
    package var configuration: VoterConfiguration?
    /// It has voted on its set, be the vote synced or not.
    package var hasVoted: Bool
    /// It is proven current itself: it has caught up with a majority, and does not go.
    package var isCurrent: Bool
    /// It has started within the last fence, and had followed a count before: there may be nodes
    /// that its answers from before prove current, and that it does not know.
    package var isRecentlyStarted: Bool
    /// Of a newcomer, who is to open the cluster as far as it is asked; see ``ClusterFormation``.
    package var nominee: NodeID?

    package init(
        standing: VoterConfiguration?, hasVoted: Bool = false, isCurrent: Bool,
        isYoung: Bool = false, nominee: NodeID? = nil
    ) {
        self.configuration = standing
        self.hasVoted = hasVoted
        self.isCurrent = isCurrent
        self.isRecentlyStarted = isYoung
        self.nominee = nominee
    }
}
