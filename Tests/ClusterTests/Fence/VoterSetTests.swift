import Cluster
import Ground
import Testing

@Suite("Voter sets")
struct VoterSetTests {
    /// Every subset of `members`.
    static func parts(of members: [NodeID]) -> [[NodeID]] {
        (0..<(1 << members.count)).map { bits in
            members.indices.filter { bits >> $0 & 1 == 1 }.map { members[$0] }
        }
    }

    static func numbers(_ count: Int) -> [UInt64] { (1...UInt64(count)).map { $0 } }

    @Test("Any majority of a set intersects its own and the next set's majorities")
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

    @Test("Half of an even set intersects every majority of that set less one")
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

    @Test("An impossible change gives no set")
    func misfits() {
        let set = FenceStage.set([1, 2])
        #expect(set.applying(by: .add(FenceStage.node(2))) == nil)
        #expect(set.applying(by: .remove([FenceStage.node(3)])) == nil)
        #expect(set.applying(by: .remove(set.members)) == nil)
        #expect(set.applying(by: .remove([FenceStage.node(1)]))?.generation == 3)
    }

    @Test("A set that no change can produce is refused when decoded")
    func unreadable() {
        let nodes = [FenceStage.node(1), FenceStage.node(2)]
        let opener = nodes[0]
        #expect(VoterSet(founder: opener, generation: 2, members: nodes.reversed()) == nil)
        #expect(VoterSet(founder: opener, generation: 2, members: []) == nil)
        #expect(VoterSet(founder: opener, generation: 0, members: [opener]) == nil)
        #expect(VoterSet(founder: opener, generation: 1, members: nodes) == nil)
    }

    @Test("Coverage of positions does not depend on their order")
    func positions() {
        let known = PositionVector([FenceStage.purge(5), FenceStage.purge(3)])
        #expect(known.covers([FenceStage.purge(5)]))
        #expect(!known.covers([FenceStage.purge(6)]))
        #expect(known.missingCount(in: PositionVector([FenceStage.purge(2)])) == 3)
        #expect(known.positions == [FenceStage.purge(5)])
    }

    @Test("Streams that end at the greatest number leave another node at most that far behind")
    func greatestMissingCount() {
        let known = PositionVector([LogStage.position(7, .max), LogStage.position(8, 2)])
        #expect(known.missingCount(in: PositionVector()) == .max)
    }
}
