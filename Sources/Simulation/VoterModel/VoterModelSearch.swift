/// Every run of a small cluster's count, breadth first, within bounds.
///
/// Two searches make a whole one: with a purge, for the promise, and without, for agreement alone;
/// a run with a purge is left as soon as no node can break the promise any more.
package struct VoterModelSearch: Sendable {
    package struct SearchResult: Sendable {
        /// Different states of the whole cluster, those at the start included.
        package var states = 0
        /// Steps from them that changed something.
        package var transitions = 0
        /// The most steps that it takes to a state.
        package var depth = 0
        /// Different states of one node, as many as the product's code was asked in.
        package var nodeStates = 0
        /// False if there were more states than are allowed.
        package var isExhaustive = true
        /// The law that a run breaks; then the search has ended early.
        package var violated: VoterModelInvariant?
        /// Such a run, a shortest one, step by step.
        package var trace: [String] = []
    }

    /// How a state came about; `branch` is which of the states that the step may lead to.
    private struct Predecessor {
        var parent: UInt32
        var branch: UInt8
        var move: VoterModelAction
    }

    private typealias Layer = [(state: VoterModelState, number: UInt32)]

    private var world: VoterModel
    private var seen: Set<VoterModelState.Digest> = []
    private var origins: [Predecessor?] = []
    private var outcome = SearchResult()

    package init(_ bounds: VoterModelBounds, flaw: VoterModelMutation? = nil) {
        world = VoterModel(bounds, flaw: flaw)
    }

    /// Plays everything, or until a law is broken.
    package mutating func run() -> SearchResult {
        var layer: Layer = []
        for state in world.starts() { enqueue(state, nil, into: &layer) }
        while !layer.isEmpty, outcome.violated == nil, outcome.isExhaustive {
            var next: Layer = []
            for (state, number) in layer {
                guard outcome.violated == nil, outcome.isExhaustive else { break }
                expand(state, number, into: &next)
            }
            layer = next
            if !layer.isEmpty { outcome.depth += 1 }
        }
        outcome.nodeStates = world.tables.nodes.count
        return outcome
    }

    private mutating func expand(
        _ state: VoterModelState, _ number: UInt32, into layer: inout Layer
    ) {
        var next: [VoterModelState] = []
        for move in world.moves(in: state) {
            next.removeAll(keepingCapacity: true)
            if let law = world.apply(move, from: state, into: &next) {
                outcome.violated = law
                outcome.trace = trace(to: number) + [world.description(of: move, in: state)]
                return
            }
            outcome.transitions += next.count
            for (branch, new) in next.enumerated() {
                let origin = Predecessor(parent: number, branch: UInt8(branch), move: move)
                enqueue(new, origin, into: &layer)
            }
        }
    }

    private mutating func enqueue(
        _ state: VoterModelState, _ origin: Predecessor?, into layer: inout Layer
    ) {
        guard seen.insert(state.digest).inserted else { return }
        outcome.isExhaustive = outcome.states < world.bounds.statesMax
        layer.append((state, UInt32(outcome.states)))
        origins.append(origin)
        outcome.states += 1
    }

    /// Plays the run to a state once more, for its words.
    private mutating func trace(to number: UInt32) -> [String] {
        var path: [Predecessor] = []
        var start = Int(number)
        while let origin = origins[start] {
            path.append(origin)
            start = Int(origin.parent)
        }
        var state = world.starts()[start]
        var lines = ["at first: \(world.description(of: state))"]
        for origin in path.reversed() {
            lines.append(world.description(of: origin.move, in: state))
            var next: [VoterModelState] = []
            guard world.apply(origin.move, from: state, into: &next) == nil,
                next.indices.contains(Int(origin.branch))
            else { break }
            state = next[Int(origin.branch)]
        }
        lines.append("then: \(world.description(of: state))")
        return lines
    }
}

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
