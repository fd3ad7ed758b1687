import Cluster
import Ground
import Testing
import Trials

@Suite("Shares of the ring", .disabled(if: Trials.isReduced))
struct RingShareTests {
    @Test("Joining or leaving moves less than 1.05 of the node's share, with 3 to 50 nodes")
    func movement() {
        var dice = SplitMix64(seed: 11)
        let members = RingStatistics.members(50, using: &dice)
        var ring = Ring(members: Array(members[..<2]))
        for count in 3...50 {
            let newcomer = members[count - 1]
            let joined = ring.adding(newcomer)
            let moved = joined.slotsMoved(from: ring)
            #expect(Double(moved) == joined.share(of: newcomer.id) * Double(RingSlot.count))
            #expect(ring.slotsMoved(from: joined) == moved)
            #expect(Double(moved * count) <= 1.05 * Double(RingSlot.count), "\(count) nodes")
            ring = joined
        }
    }

    @Test("No node of ten owns more than 1.02 of the mean", arguments: [1, 2, 3] as [UInt64])
    func balance(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let ring = Ring(members: RingStatistics.members(10, using: &dice))
        for member in ring.members { #expect(ring.share(of: member.id) <= 0.102) }
        #expect(ring.slotsOwned.reduce(0, +) == RingSlot.count)
    }

    @Test(
        "Shares follow the weights, also for the second owner",
        arguments: [[100, 100, 200, 400], [1, 65_535], [1, 2, 3, 4, 5], [300, 100, 7]])
    func weights(weights: [UInt16]) {
        var dice = SplitMix64(seed: 12)
        let members = weights.map { RingMember(NodeID(using: &dice), weight: $0) }
        let ring = Ring(members: members)
        let sum = weights.reduce(0.0) { $0 + Double($1) }
        for member in members {
            let part = Double(member.weight) / sum
            expect(ring.slots(ownedBy: member.id).count, of: RingSlot.count, part: part)
            #expect(
                ring.share(of: member.id) * Double(RingSlot.count)
                    == Double(ring.slots(ownedBy: member.id).count))
            let without = members.filter { $0 != member }
            let owned = ring.slots(ownedBy: member.id)
            for other in without {
                let second = owned.count { ring.owners(of: $0)[1] == other.id }
                let rest = sum - Double(member.weight)
                expect(second, of: owned.count, part: Double(other.weight) / rest)
            }
        }
    }

    /// Expects a count within five standard deviations of a binomial distribution, and one more.
    private func expect(_ count: Int, of all: Int, part: Double) {
        let mean = Double(all) * part
        let deviation = (mean * (1 - part)).squareRoot()
        #expect(abs(Double(count) - mean) <= 5 * deviation + 1, "\(count) of \(all), part \(part)")
    }

    @Test("A slot counts for each member at the given number of positions")
    func positions() {
        var dice = SplitMix64(seed: 13)
        let ring = Ring(members: RingStatistics.members(12, using: &dice))
        for positions in [1, 2, 5, 8] {
            let slots = ring.members.map { ring.slots(ownedBy: $0.id, amongFirst: positions) }
            #expect(slots.reduce(0) { $0 + $1.count } == positions * RingSlot.count)
            for (member, slots) in zip(ring.members, slots) {
                #expect(
                    slots.prefix(500).allSatisfy { slot in
                        ring.owners(of: slot).prefix(positions).contains(member.id)
                    })
            }
        }
        #expect(ring.slots(ownedBy: ring.members[0].id, amongFirst: 99).count > 0)
    }

    @Test("A slot has moved if its first owner is another; a change of the second is none")
    func moved() {
        let members = (1...3).map { RingMember(NodeID(low: $0, high: 0)) }
        let three = Ring(members: members)
        let two = three.removing(members[1].id)
        #expect(two.slotsMoved(from: three) == three.slots(ownedBy: members[1].id).count)
        let other = Ring(members: (4...5).map { RingMember(NodeID(low: $0, high: 0)) })
        #expect(other.slotsMoved(from: three) == RingSlot.count)
        #expect(three.slotsMoved(from: three) == 0)
    }

    @Test("Figures are relative to equal shares")
    func figures() {
        var dice = SplitMix64(seed: 14)
        let members = RingStatistics.members(5, using: &dice)
        let ring = Ring(members: Array(members[..<4]))
        let joined = ring.adding(members[4])
        let figures = RingStatistics(
            of: ring, afterJoin: joined, afterLeave: ring.removing(members[0].id))
        let shares = members[..<4].map { ring.share(of: $0.id) }
        #expect(figures.nodes == 4)
        #expect(figures.peakToMean == (shares.max() ?? 0) * 4)
        #expect(figures.minToMean == (shares.min() ?? 0) * 4)
        #expect(figures.movedOnJoinToMean == joined.share(of: members[4].id) * 5)
        #expect(figures.movedOnLeaveToMean == shares[0] * 4)
    }
}
