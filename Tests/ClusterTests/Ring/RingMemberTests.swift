import Cluster
import Ground
import Testing

@Suite("Members of the ring")
struct RingMemberTests {
    private func record(
        _ number: UInt64, _ state: MemberRecord.State = .alive,
        _ role: Member.Role = .isCaughtUp, weight: UInt16 = 100
    ) throws -> MemberRecord {
        let place = try #require(HostPort("10.0.0.1:7801"))
        let address = try #require(PeerAddress(place))
        let member = Member(
            id: NodeID(low: number, high: 0), process: ProcessID(high: 1, low: number),
            address: address, weight: weight, versions: 1...1, role: role)
        return MemberRecord(member, Incarnation(epoch: 1, count: 0), state)
    }

    @Test(
        "Owners are alive or suspected, have caught up and do not drain",
        arguments: MemberRecord.State.allCases,
        [[], .isCaughtUp, .isDraining, [.isCaughtUp, .isDraining]] as [Member.Role])
    func owning(state: MemberRecord.State, role: Member.Role) throws {
        let owns = (state == .alive || state == .suspected) && role == .isCaughtUp
        let record = try record(7, state, role)
        #expect(record.isRingMember == owns)
        #expect(RingMember.owners(among: [record]).count == (owns ? 1 : 0))
    }

    @Test("Ring members are sorted by id and have their weights, in any order of records")
    func sorted() throws {
        let records = try [
            record(9, weight: 50), record(3), record(5, .dead), record(4, .suspected, weight: 7),
        ]
        let members = [
            RingMember(NodeID(low: 3, high: 0)), RingMember(NodeID(low: 4, high: 0), weight: 7),
            RingMember(NodeID(low: 9, high: 0), weight: 50),
        ]
        #expect(RingMember.owners(among: records) == members)
        #expect(RingMember.owners(among: records.reversed()) == members)
        #expect(RingMember.owners(among: []).isEmpty)
    }

    @Test("A declared weight is capped at the limit")
    func cut() throws {
        let records = try [
            record(1), record(2), record(3), record(4, weight: .max), record(5, weight: 400),
        ]
        let members = RingMember.owners(among: records.reversed(), weightMax: 400)
        #expect(members.map(\.weight) == [100, 100, 100, 400, 400])
        let ring = Ring(members: members)
        #expect(ring.share(of: NodeID(low: 4, high: 0)) < 0.38)
        #expect(ring.share(of: NodeID(low: 1, high: 0)) > 0.08)
        #expect(RingMember.owners(among: records, weightMax: 1).allSatisfy { $0.weight == 1 })
    }

    @Test("Of more than 256 candidates the 256 with the lowest ids are members")
    func limit() throws {
        var dice = SplitMix64(seed: 1)
        let dead = try (0..<50 as Range<UInt64>).map { try record($0, .dead) }
        let alive = try (50..<350 as Range<UInt64>).map { try record($0) }
        let members = RingMember.owners(among: (dead + alive).shuffled(using: &dice))
        #expect(members.map(\.id.low) == Array(50..<306))
    }
}
