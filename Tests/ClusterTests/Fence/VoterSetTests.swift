import Cluster
import Ground
import Testing

@Suite("The sets that majorities are of")
struct VoterSetTests {
    /// Every part of `members`.
    static func parts(of members: [NodeID]) -> [[NodeID]] {
        (0..<(1 << members.count)).map { bits in
            members.indices.filter { bits >> $0 & 1 == 1 }.map { members[$0] }
        }
    }

    static func numbers(_ count: Int) -> [UInt64] { (1...UInt64(count)).map { $0 } }

    @Test("any majority of a set shares a member with any of itself and of the next one")
    func intersection() {
        for count in 1...6 {
            let set = FenceStage.set(Self.numbers(count))
            var changes = [VoterSetChange.add(FenceStage.node(99))]
            if count > 1 { changes += set.members.map { .remove([$0]) } }
            for next in changes.compactMap({ set.applying(by: $0) }) + [set] {
                let theirs = Self.parts(of: next.members).filter { next.isMajority($0) }
                for ours in Self.parts(of: set.members) where set.isMajority(ours) {
                    #expect(theirs.allSatisfy { !Set($0).isDisjoint(with: ours) })
                }
            }
        }
    }

    @Test("of an even number, the majority of those that one is taken from meets every majority")
    func operatorsMajority() {
        for count in [2, 4, 6] {
            let set = FenceStage.set(Self.numbers(count))
            let gone = [set.members[0]]
            for ours in Self.parts(of: set.members) where set.isMajority(ours, excluding: gone) {
                for theirs in Self.parts(of: set.members) where set.isMajority(theirs) {
                    #expect(!Set(theirs).isDisjoint(with: ours))
                }
            }
        }
    }

    @Test("a change that does not fit makes no set")
    func misfits() {
        let set = FenceStage.set([1, 2])
        #expect(set.applying(by: .add(FenceStage.node(2))) == nil)
        #expect(set.applying(by: .remove([FenceStage.node(3)])) == nil)
        #expect(set.applying(by: .remove(set.members)) == nil)
        #expect(set.applying(by: .remove([FenceStage.node(1)]))?.generation == 3)
    }

    @Test("what no change can have made is refused when read")
    func unreadable() {
        let nodes = [FenceStage.node(1), FenceStage.node(2)]
        let opener = nodes[0]
        #expect(VoterSet(founder: opener, generation: 2, members: nodes.reversed()) == nil)
        #expect(VoterSet(founder: opener, generation: 2, members: []) == nil)
        #expect(VoterSet(founder: opener, generation: 0, members: [opener]) == nil)
        #expect(VoterSet(founder: opener, generation: 1, members: nodes) == nil)
    }

    @Test("positions are covered whatever the order in which they were heard")
    func positions() {
        let known = PositionVector([FenceStage.purge(5), FenceStage.purge(3)])
        #expect(known.covers([FenceStage.purge(5)]))
        #expect(!known.covers([FenceStage.purge(6)]))
        #expect(known.missingCount(in: PositionVector([FenceStage.purge(2)])) == 3)
        #expect(known.positions == [FenceStage.purge(5)])
    }
}
