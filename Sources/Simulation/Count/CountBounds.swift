/// How far a search of the count goes: every run within these bounds is played.
package struct CountBounds: Hashable, Sendable {
    /// Nodes of the cluster, counted or not; 2 to 4.
    package var nodes = 3
    /// Changes of the counted set, one after the other.
    package var changes = 2
    /// Nodes that lose what they have not synced, and start again.
    package var crashes = 1
    /// Ballots that are begun, those of all changes together.
    package var ballots = 2
    /// Nodes that begin ballots: those with the lowest ids.
    package var owners = 2
    /// Answers that arrive later than they were given.
    package var lateAnswers = 0
    /// Votes for an unsettled set are given again, at any time.
    package var hasRepeats = false
    /// With a purge, which any node issues at any time; without one a run is about sets alone.
    package var hasPurge = true
    /// Words of the operator by which several members are forgotten, though they run.
    package var orders = 0
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
package enum CountFlaw: String, CaseIterable, Hashable, Sendable {
    /// Votes name nothing, so that every set is settled as soon as it is decided.
    case unsettled
    /// Whoever begins a ballot votes in it without a promise of anybody else.
    case unpromised
    /// Several members are forgotten by a majority of the others, and go on.
    case orderedWhileTheyRun
    /// A node that crashes has lost the last vote that it had synced.
    case lostVote
    /// A contact counts from when its answer is read.
    case timedFromAnswer

    /// Small bounds within which the mistake shows.
    package var bounds: CountBounds {
        var bounds = CountBounds(nodes: 3)
        bounds.firstSets = 3...3
        bounds.crashes = 0
        switch self {
        case .unsettled:
            bounds.owners = 1
        case .unpromised:
            bounds.changes = 1
            bounds.hasPurge = false
        case .orderedWhileTheyRun:
            bounds.changes = 1
            bounds.ballots = 1
            bounds.orders = 1
            bounds.hasPurge = false
        case .lostVote:
            bounds.changes = 1
            bounds.crashes = 1
            bounds.hasPurge = false
        case .timedFromAnswer:
            bounds.changes = 0
            bounds.ballots = 0
            bounds.lateAnswers = 1
        }
        return bounds
    }
}

/// What must hold in every state.
package enum CountLaw: String, Hashable, Sendable {
    /// A generation has one set, and nobody follows one that was not decided.
    case agreement
    /// Whoever is proven current a fence after the purge was durable has applied it.
    case promise
}
