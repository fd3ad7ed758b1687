import Cluster
import Ground
import Testing

@Suite("Who is offered what after a change of owners")
struct RingMoveTests {
    private func members(_ count: Int) -> [RingMember] {
        var dice = Dice(seed: 5)
        return (0..<count).map { _ in RingMember(NodeID(using: &dice)) }
    }

    private let digests = (0..<5_000).map { number -> EntryDigest in
        let first = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
        return EntryDigest(first: first, second: ~first)
    }

    @Test("a node that joins is offered its own share, by every holder, and nobody else is")
    func join() {
        let members = members(5)
        let (before, after) = (Ring(members: Array(members.prefix(4))), Ring(members: members))
        let new = members[4].id
        let move = RingMove(from: before, to: after, replicas: 2, holder: members[0].id)
        var offered = 0
        for digest in digests {
            let gainers = move.gainers(of: digest)
            let owns = after.owners(of: digest).prefix(2).contains(new)
            #expect(gainers == (owns ? [new] : []))
            if owns { offered += 1 }
        }
        // Two of five keep each.
        #expect((0.35...0.45).contains(Double(offered) / Double(digests.count)))
    }

    @Test("after a death somebody is offered each image that the dead one kept")
    func death() {
        let members = members(5)
        let (before, after) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let dead = members[4].id
        for digest in digests {
            let owners = before.owners(of: digest).prefix(2)
            guard let left = owners.first(where: { $0 != dead }) else { continue }
            let move = RingMove(from: before, to: after, replicas: 2, holder: left)
            #expect(move.gainers(of: digest).count == (owners.contains(dead) ? 1 : 0))
        }
    }

    @Test("who drains offers everything that it kept to those who keep it now")
    func drain() {
        let members = members(3)
        let (before, after) = (Ring(members: members), Ring(members: Array(members.dropLast())))
        let own = members[2].id
        let move = RingMove(from: before, to: after, replicas: 1, holder: own)
        for digest in digests where before.owners(of: digest).first == own {
            #expect(move.gainers(of: digest) == Array(after.owners(of: digest).prefix(1)))
        }
    }

    @Test("nothing is offered to the holder itself, nor where nothing has changed")
    func none() {
        let members = members(3)
        let ring = Ring(members: members)
        #expect(RingMove(from: ring, to: ring, replicas: 2, holder: members[0].id).isNone)
        let alone = Ring(members: [members[0]])
        let move = RingMove(from: ring, to: alone, replicas: 2, holder: members[0].id)
        #expect(digests.allSatisfy { move.gainers(of: $0).isEmpty })
    }
}
