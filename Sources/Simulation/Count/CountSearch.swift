/// Every run of a small cluster's count, breadth first, within bounds.
///
/// Two searches make a whole one: with a purge, for the promise, and without, for agreement alone;
/// a run with a purge is left as soon as no node can break the promise any more.
package struct CountSearch: Sendable {
    package struct Outcome: Sendable {
        /// Different states of the whole cluster, those at the start included.
        package var states = 0
        /// Steps from them that changed something.
        package var transitions = 0
        /// The most steps that it takes to a state.
        package var depth = 0
        /// Different states of one node, as many as the product's code was asked in.
        package var nodeStates = 0
        /// False if there were more states than are allowed.
        package var isWhole = true
        /// The law that a run breaks; then the search has ended early.
        package var broken: CountLaw?
        /// Such a run, a shortest one, step by step.
        package var trace: [String] = []
    }

    /// How a state came about; `branch` is which of the states that the step may lead to.
    private struct Origin {
        var parent: UInt32
        var branch: UInt8
        var move: CountMove
    }

    private typealias Layer = [(state: CountState, number: UInt32)]

    private var world: CountWorld
    private var seen: Set<CountState.Digest> = []
    private var origins: [Origin?] = []
    private var outcome = Outcome()

    package init(_ bounds: CountBounds, flaw: CountFlaw? = nil) {
        world = CountWorld(bounds, flaw: flaw)
    }

    /// Plays everything, or until a law is broken.
    package mutating func run() -> Outcome {
        var layer: Layer = []
        for state in world.starts() { take(state, nil, into: &layer) }
        while !layer.isEmpty, outcome.broken == nil, outcome.isWhole {
            var next: Layer = []
            for (state, number) in layer {
                guard outcome.broken == nil, outcome.isWhole else { break }
                follow(state, number, into: &next)
            }
            layer = next
            if !layer.isEmpty { outcome.depth += 1 }
        }
        outcome.nodeStates = world.tables.nodes.count
        return outcome
    }

    private mutating func follow(
        _ state: CountState, _ number: UInt32, into layer: inout Layer
    ) {
        var next: [CountState] = []
        for move in world.moves(in: state) {
            next.removeAll(keepingCapacity: true)
            if let law = world.play(move, from: state, into: &next) {
                outcome.broken = law
                outcome.trace = trace(to: number) + [world.description(of: move, in: state)]
                return
            }
            outcome.transitions += next.count
            for (branch, new) in next.enumerated() {
                let origin = Origin(parent: number, branch: UInt8(branch), move: move)
                take(new, origin, into: &layer)
            }
        }
    }

    private mutating func take(_ state: CountState, _ origin: Origin?, into layer: inout Layer) {
        guard seen.insert(state.digest).inserted else { return }
        outcome.isWhole = outcome.states < world.bounds.statesMax
        layer.append((state, UInt32(outcome.states)))
        origins.append(origin)
        outcome.states += 1
    }

    /// Plays the run to a state once more, for its words.
    private mutating func trace(to number: UInt32) -> [String] {
        var path: [Origin] = []
        var start = Int(number)
        while let origin = origins[start] {
            path.append(origin)
            start = Int(origin.parent)
        }
        var state = world.starts()[start]
        var lines = ["at first: \(world.description(of: state))"]
        for origin in path.reversed() {
            lines.append(world.description(of: origin.move, in: state))
            var next: [CountState] = []
            guard world.play(origin.move, from: state, into: &next) == nil,
                next.indices.contains(Int(origin.branch))
            else { break }
            state = next[Int(origin.branch)]
        }
        lines.append("then: \(world.description(of: state))")
        return lines
    }
}
