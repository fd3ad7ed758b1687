/// An exhaustive breadth-first search of all runs of a small cluster's voter set, within bounds.
///
/// A complete check takes two searches: one with a purge, for the fence, and one without, for
/// agreement alone. A run with a purge is left as soon as no node can break the fence any more.
package struct VoterModelSearch: Sendable {
    /// The result of a search.
    package struct SearchResult: Sendable {
        /// The number of different cluster states, including initial ones.
        package var states = 0
        /// The number of steps between states.
        package var transitions = 0
        /// Maximum number of steps to reach a state.
        package var depth = 0
        /// The number of different node states, each of which the production code was run in.
        package var nodeStates = 0
        /// False if there were more states than ``VoterModelBounds/statesMax``.
        package var isExhaustive = true
        /// The invariant that a run breaks; the search has then ended early.
        package var violated: VoterModelInvariant?
        /// A shortest run that breaks it, step by step.
        package var trace: [String] = []
    }

    /// The step that led to a state; `branch` selects one of its possible outcomes.
    private struct Predecessor {
        var parent: UInt32
        var branch: UInt8
        var move: VoterModelAction
    }

    private typealias Layer = [(state: VoterModelState, number: UInt32)]

    private var world: VoterModel
    private var seen: Set<VoterModelState.Digest> = []
    /// The step that led to each state; `nil` for initial states.
    private var origins: [Predecessor?] = []
    private var outcome = SearchResult()

    /// Creates a search within `bounds`; `flaw` is a deliberate fault, `nil` for none.
    package init(_ bounds: VoterModelBounds, flaw: VoterModelMutation? = nil) {
        world = VoterModel(bounds, flaw: flaw)
    }

    /// Runs the search to the end, or until an invariant is broken.
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

    /// Adds the unseen successors of a state to a layer, or records the invariant that an action
    /// breaks.
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

    /// Adds a state to a layer, unless it was seen.
    private mutating func enqueue(
        _ state: VoterModelState, _ origin: Predecessor?, into layer: inout Layer
    ) {
        guard seen.insert(state.digest).inserted else { return }
        outcome.isExhaustive = outcome.states < world.bounds.statesMax
        layer.append((state, UInt32(outcome.states)))
        origins.append(origin)
        outcome.states += 1
    }

    /// Repeats the run to a state to describe its steps.
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

/// The bounds of a search; every run within them is explored.
package struct VoterModelBounds: Hashable, Sendable {
    /// The number of nodes, voters or not; 2 to 4.
    package var nodes = 3
    /// The number of successive changes of the voter set.
    package var changes = 2
    /// The number of crashes with restart, in which unsynced writes are lost.
    package var crashes = 1
    /// The number of ballots, over all changes.
    package var ballots = 2
    /// The number of nodes that start ballots: those with the lowest ids.
    package var proposers = 2
    /// The number of delayed responses.
    package var delayedResponses = 0
    /// True if votes for an unsettled set may be repeated at any time.
    package var hasRepeatedVotes = false
    /// True if any node may issue one purge at any time; otherwise only the voter sets are checked.
    package var hasPurge = true
    /// The number of removals of several running members by the operator.
    package var operatorChanges = 0
    /// The sizes of the initial voter sets.
    package var firstSets: ClosedRange<Int>
    /// Maximum number of states, after which the search stops.
    package var statesMax = 100_000_000

    /// Creates the default bounds for a number of nodes.
    package init(nodes: Int) {
        self.nodes = nodes
        firstSets = 1...nodes
    }
}

/// A deliberate fault that a search must detect.
package enum VoterModelMutation: String, CaseIterable, Hashable, Sendable {
    /// Votes list no positions, so that every set is settled as soon as it is decided.
    case settledWithoutPositions
    /// A proposer votes in its ballot without promises of other nodes.
    case voteWithoutPromises
    /// Several members are removed by a majority of the others, and continue to run.
    case removedWhileRunning
    /// A crash loses the last vote that the node has synced.
    case lostVote
    /// A contact is dated by the arrival of its response.
    case contactTimedFromResponse

    /// Small bounds within which the fault is detected.
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

/// An invariant that must hold in every state.
package enum VoterModelInvariant: String, Hashable, Sendable {
    /// A generation has one voter set, and no node follows a set that was not decided.
    case agreement
    /// A node that is current one fence after the purge became durable has applied it.
    case fence
}
