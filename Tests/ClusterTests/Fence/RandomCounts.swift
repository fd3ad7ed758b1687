import Cluster
import Ground

/// Random voter sets, some of maximum size.
extension VoterSet {
    static func random(using dice: inout SplitMix64, listMax: Int = VoterSet.membersMax) -> VoterSet
    {
        let members = dice.nodes(max: listMax)
        guard
            let set = VoterSet(
                founder: members[0],
                generation: UInt64.random(in: 2...(1 << 62), using: &dice), members: members)
        else { preconditionFailure("a set of \(members)") }
        return set
    }
}

extension VoterConfiguration {
    static func random(
        using dice: inout SplitMix64, listMax: Int = VoterSet.membersMax
    ) -> VoterConfiguration {
        VoterConfiguration(
            .random(using: &dice, listMax: listMax),
            after: Bool.random(using: &dice) ? nil : .random(using: &dice, listMax: listMax))
    }
}

extension VoterSetChange {
    static func random(using dice: inout SplitMix64, listMax: Int) -> VoterSetChange {
        let nodes = dice.nodes(max: listMax)
        return Bool.random(using: &dice) ? .add(nodes[0]) : .remove(nodes)
    }
}

extension Ballot {
    static func random(using dice: inout SplitMix64, listMax: Int) -> Ballot {
        Ballot(
            round: UInt64.random(in: 1...(1 << 62), using: &dice), proposer: NodeID(using: &dice),
            excluding: Bool.random(using: &dice) ? [] : dice.nodes(max: listMax))
    }
}

extension ConsensusRecord {
    static func random(
        using dice: inout SplitMix64, listMax: Int = VoterSet.membersMax, holdsMax: Int = 1_023
    ) -> ConsensusRecord {
        let body: Payload =
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: .joined(previous: nil)
            case 1: .joined(previous: .random(using: &dice, listMax: listMax))
            case 2: .promise(voted: nil)
            case 3:
                .promise(
                    voted: Vote(
                        ballot: .random(using: &dice, listMax: listMax),
                        change: .random(using: &dice, listMax: listMax)))
            default:
                .vote(
                    .random(using: &dice, listMax: listMax),
                    synced: dice.list(max: holdsMax) { .random(using: &$0) })
            }
        return ConsensusRecord(
            base: .random(using: &dice, listMax: listMax), member: NodeID(using: &dice),
            ballot: .random(using: &dice, listMax: listMax), body: body)
    }
}

extension VoterSetView {
    static func random(using dice: inout SplitMix64) -> VoterSetView {
        VoterSetView(
            configuration: Bool.random(using: &dice) ? nil : .random(using: &dice),
            hasVoted: Bool.random(using: &dice), isCurrent: Bool.random(using: &dice),
            isRecentlyStarted: Bool.random(using: &dice))
    }
}

extension SplitMix64 {
    /// Random ids in ascending order, at least one.
    mutating func nodes(max countMax: Int) -> [NodeID] {
        (list(max: countMax - 1) { NodeID(using: &$0) } + [NodeID(using: &self)]).sorted()
    }
}
