import Ground

/// Which positions go with the next gossip to one peer: a few at a time, and in turn all of them.
///
/// The own stream's goes always, for it changes most. Of `n` others each goes once in so many
/// messages as it takes to say `n`, whatever streams come and go meanwhile.
package struct KnowledgeTurns: Sendable {
    /// The most positions in one message.
    package static let countMax = 64

    private let own: ProcessID
    /// The last one that went.
    private var last: ProcessID?

    package init(own: ProcessID) {
        self.own = own
    }

    /// Those of `positions`, which are in the order of their processes, that go now.
    package mutating func next(of positions: [StreamPosition]) -> [StreamPosition] {
        guard positions.count > Self.countMax else { return positions }
        var turn = positions.filter { $0.process == own }
        let others = positions.filter { $0.process != own }
        let start = last.map { last in others.sortedCount { $0.process <= last } } ?? 0
        for step in 0..<min(others.count, Self.countMax - turn.count) {
            turn.append(others[(start + step) % others.count])
        }
        last = turn.last?.process
        return turn
    }
}
