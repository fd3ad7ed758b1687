/// How far a search of the count goes: every run within these bounds is played.
package struct VoterModelBounds: Hashable, Sendable {
    /// Nodes of the cluster, counted or not; 2 to 4.
    package var nodes = 3
    /// Changes of the counted set, one after the other.
    package var changes = 2
    /// Nodes that lose what they have not synced, and start again.
    package var crashes = 1
    /// Ballots that are begun, those of all changes together.
    package var ballots = 2
    /// Nodes that begin ballots: those with the lowest ids.
    package var proposers = 2
    /// Answers that arrive later than they were given.
    package var delayedResponses = 0
    /// Votes for an unsettled set are given again, at any time.
    package var hasRepeatedVotes = false
    /// With a purge, which any node issues at any time; without one a run is about sets alone.
    package var hasPurge = true
    /// Words of the operator by which several members are forgotten, though they run.
    package var operatorChanges = 0
    /// How many of the nodes the first set may have.
    package var firstSets: ClosedRange<Int>
    /// A search that meets more states gives up.
    package var statesMax = 100_000_000

    package init(nodes: Int) {
        self.nodes = nodes
        firstSets = 1...nodes
    }
}

/// A mistake that a search is to find.
package enum VoterModelMutation: String, CaseIterable, Hashable, Sendable {
    /// Votes name nothing, so that every set is settled as soon as it is decided.
    case settledWithoutPositions
    /// Whoever begins a ballot votes in it without a promise of anybody else.
    case voteWithoutPromises
    /// Several members are forgotten by a majority of the others, and go on.
    case removedWhileRunning
    /// A node that crashes has lost the last vote that it had synced.
    case lostVote
    /// A contact counts from when its answer is read.
    case contactTimedFromResponse

    /// Small bounds within which the mistake shows.
    package var bounds: VoterModelBounds {
        var bounds = VoterModelBounds(nodes: 3)
        bounds.firstSets = 3...3
        bounds.crashes = 0
        switch self {
        case .settledWithoutPositions:
            bounds.proposers = 1
        case .voteWithoutPromises:
            bounds.changes = 1
            bounds.hasPurge = false
        case .removedWhileRunning:
            bounds.changes = 1
            bounds.ballots = 1
            bounds.operatorChanges = 1
            bounds.hasPurge = false
        case .lostVote:
            bounds.changes = 1
            bounds.crashes = 1
            bounds.hasPurge = false
        case .contactTimedFromResponse:
            bounds.changes = 0
            bounds.ballots = 0
            bounds.delayedResponses = 1
        }
        return bounds
    }
}

/// What must hold in every state.
package enum VoterModelInvariant: String, Hashable, Sendable {
    /// A generation has one set, and nobody follows one that was not decided.
    case agreement
    /// Whoever is proven current a fence after the purge was durable has applied it.
    case fence
}
