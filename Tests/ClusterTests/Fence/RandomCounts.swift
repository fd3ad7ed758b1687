import Cluster
import Ground

/// Counts as they may come to be written, now and then as long as they may be.
extension CountedSet {
    static func random(using dice: inout Dice, listMax: Int = CountedSet.membersMax) -> CountedSet {
        let members = dice.nodes(max: listMax)
        guard
            let set = CountedSet(
                opener: members[0],
                generation: UInt64.random(in: 2...(1 << 62), using: &dice), members: members)
        else { preconditionFailure("a set of \(members)") }
        return set
    }
}

extension CountStanding {
    static func random(
        using dice: inout Dice, listMax: Int = CountedSet.membersMax
    ) -> CountStanding {
        CountStanding(
            .random(using: &dice, listMax: listMax),
            after: Bool.random(using: &dice) ? nil : .random(using: &dice, listMax: listMax))
    }
}

extension CountChange {
    static func random(using dice: inout Dice, listMax: Int) -> CountChange {
        let nodes = dice.nodes(max: listMax)
        return Bool.random(using: &dice) ? .count(nodes[0]) : .forget(nodes)
    }
}

extension CountBallot {
    static func random(using dice: inout Dice, listMax: Int) -> CountBallot {
        CountBallot(
            round: UInt64.random(in: 1...(1 << 62), using: &dice), owner: NodeID(using: &dice),
            without: Bool.random(using: &dice) ? [] : dice.nodes(max: listMax))
    }
}

extension CountRecord {
    static func random(
        using dice: inout Dice, listMax: Int = CountedSet.membersMax, holdsMax: Int = 1_023
    ) -> CountRecord {
        let body: Body =
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: .joined(previous: nil)
            case 1: .joined(previous: .random(using: &dice, listMax: listMax))
            case 2: .promise(voted: nil)
            case 3:
                .promise(
                    voted: CountVote(
                        ballot: .random(using: &dice, listMax: listMax),
                        change: .random(using: &dice, listMax: listMax)))
            default:
                .vote(
                    .random(using: &dice, listMax: listMax),
                    holds: dice.list(max: holdsMax) { .random(using: &$0) })
            }
        return CountRecord(
            base: .random(using: &dice, listMax: listMax), member: NodeID(using: &dice),
            ballot: .random(using: &dice, listMax: listMax), body: body)
    }
}

extension CountView {
    static func random(using dice: inout Dice) -> CountView {
        CountView(
            standing: Bool.random(using: &dice) ? nil : .random(using: &dice),
            hasVoted: Bool.random(using: &dice), isCurrent: Bool.random(using: &dice),
            isYoung: Bool.random(using: &dice))
    }
}

extension Dice {
    /// Ascending, at least one.
    mutating func nodes(max countMax: Int) -> [NodeID] {
        (list(max: countMax - 1) { NodeID(using: &$0) } + [NodeID(using: &self)]).sorted()
    }
}
