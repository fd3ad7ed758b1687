import Cluster
import Ground
import Testing
import Trials

@Suite("Offers after a change of owners", .disabled(if: Trials.isReduced))
struct OwnershipChangeTests {
    private func members(_ count: Int) -> [RingMember] {
        var dice = SplitMix64(seed: 5)
        return (0..<count).map { _ in RingMember(NodeID(using: &dice)) }
    }

    private let digests = (0..<5_000).map { number -> EntryDigest in
        let first = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
        return EntryDigest(first: first, second: ~first)
    }

    private func move(
        from before: Ring, to after: Ring, replicas: Int, holder: NodeID
    ) -> OwnershipChange {
        var move = OwnershipChange(settled: before, replicas: replicas, sender: holder)
        move.change(to: after)
        return move
    }

    @Test("A joining node is offered its share by every holder, and no other node is")
    func join() {
        let members = members(5)
        let (before, after) = (Ring(members: Array(members.prefix(4))), Ring(members: members))
        let new = members[4].id
        let move = move(from: before, to: after, replicas: 2, holder: members[0].id)
        var offered = 0
        for digest in digests {
            let gainers = move.newOwners(of: digest)
            let owns = after.owners(of: digest).prefix(2).contains(new)
            #expect(gainers == (owns ? [new] : []))
            if owns { offered += 1 }
        }
        // Two of five nodes keep each entry.
        #expect((0.35...0.45).contains(Double(offered) / Double(digests.count)))
    }

    @Test("After a death a new owner is offered each image of the dead node")
    func death() {
        let members = members(5)
        let (before, after) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let dead = members[4].id
        for digest in digests {
            let owners = before.owners(of: digest).prefix(2)
            guard let left = owners.first(where: { $0 != dead }) else { continue }
            let move = move(from: before, to: after, replicas: 2, holder: left)
            #expect(move.newOwners(of: digest).count == (owners.contains(dead) ? 1 : 0))
        }
    }

    @Test("A draining node offers everything it kept to the new owners")
    func drain() {
        let members = members(3)
        let (before, after) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let own = members[2].id
        let move = move(from: before, to: after, replicas: 1, holder: own)
        for digest in digests where before.owners(of: digest).first == own {
            #expect(move.newOwners(of: digest) == Array(after.owners(of: digest).prefix(1)))
        }
    }

    @Test("The holder itself and unchanged owners are offered nothing")
    func none() {
        let members = members(3)
        let ring = Ring(members: members)
        #expect(move(from: ring, to: ring, replicas: 2, holder: members[0].id).isSettled)
        let alone = Ring(members: [members[0]])
        let move = move(from: ring, to: alone, replicas: 2, holder: members[0].id)
        #expect(digests.allSatisfy { move.newOwners(of: $0).isEmpty })
    }

    @Test("A node that was away is offered all it owns, although the ring is the same as before")
    func back() {
        let members = members(4)
        let (all, rest) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let away = members[3].id
        var move = OwnershipChange(settled: all, replicas: 2, sender: members[0].id)
        move.change(to: rest)
        move.change(to: all)
        #expect(!move.isSettled)
        for digest in digests {
            let owns = all.owners(of: digest).prefix(2).contains(away)
            #expect(move.newOwners(of: digest) == (owns ? [away] : []))
        }
        move.settle()
        #expect(move.isSettled && digests.allSatisfy { move.newOwners(of: $0).isEmpty })
        // The same for a node that was unreachable while the ring never changed.
        move.markMissed(away)
        #expect(digests.contains { move.newOwners(of: $0) == [away] })
        #expect(digests.allSatisfy { move.newOwners(of: $0).allSatisfy { $0 == away } })
    }

    @Test("After many changes every node is offered everything it owns")
    func many() {
        let members = members(4)
        let (all, rest) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let own = members[0].id
        var move = OwnershipChange(settled: all, replicas: 2, sender: own)
        for _ in 0...OwnershipChange.ringsMax {
            move.change(to: rest)
            move.change(to: all)
        }
        for digest in digests {
            let others = all.owners(of: digest).prefix(2).filter { $0 != own }
            #expect(move.newOwners(of: digest) == others)
        }
    }
}
