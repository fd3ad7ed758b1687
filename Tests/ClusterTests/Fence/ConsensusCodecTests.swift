import Cluster
import Ground
import Testing
import Trials

@Suite("The encoding of consensus records")
struct ConsensusCodecTests {
    private static let kind = PeerFrameKind(rawValue: 99)

    @Test("An encoded record decodes to the same record")
    func roundTrip() throws {
        var dice = SplitMix64(seed: 11)
        for _ in 0..<Trials.count(2_000) {
            let record = ConsensusRecord.random(using: &dice)
            let bytes = try record.bytes()
            #expect(bytes.count <= Invalidation.contentBytesMax - 256)
            #expect(try ConsensusRecord.read(bytes.span, in: Self.kind) == record)
            let configuration = VoterConfiguration.random(using: &dice)
            let configurationBytes = try configuration.bytes()
            #expect(
                try VoterConfiguration.read(configurationBytes.span, in: Self.kind) == configuration
            )
        }
    }

    @Test("The encoding matches the vectors")
    func vectors() throws {
        let set = VoterSet(foundedBy: NodeID(low: 1, high: 2))
        let node: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        let setBytes: [UInt8] = [26, 0, 1, 0, 0, 0, 0, 0, 0, 0] + node + [1, 0, 16, 0] + node
        #expect(try set.bytes() == setBytes)
        #expect(try VoterConfiguration(set).bytes() == [2, 0, 1, 0, 46, 0] + setBytes)
        let ballot = Ballot(round: 7, proposer: NodeID(low: 1, high: 2))
        let ballotBytes: [UInt8] = [26, 0, 7, 0, 0, 0, 0, 0, 0, 0] + node
        #expect(try ballot.bytes() == ballotBytes)
        let vote = ConsensusRecord(
            base: set, member: NodeID(low: 1, high: 2), ballot: ballot,
            body: .vote(
                .remove([NodeID(low: 3, high: 0)]),
                synced: [StreamPosition(process: ProcessID(high: 0, low: 4), count: 5)]))
        let gone: [UInt8] = [3] + Array(repeating: 0, count: 15)
        let change: [UInt8] = [4, 0, 2, 0, 1, 0, 16, 0] + gone
        let holds: [UInt8] = [4] + Array(repeating: 0, count: 15) + [5, 0, 0, 0, 0, 0, 0, 0]
        let bytes =
            [20, 0, 3, 0] + node + [1, 0, 46, 0] + setBytes + [2, 0, 26, 0] + ballotBytes
            + [5, 0, 24, 0] + change + [6, 0, 24, 0] + holds
        #expect(try vote.bytes() == bytes)
        #expect(try ConsensusRecord.read(bytes.span, in: Self.kind) == vote)
    }

    @Test("A truncated or damaged record is a fault, or a record that can be encoded again")
    func damage() throws {
        var dice = SplitMix64(seed: 12)
        var (faults, others) = (0, 0)
        for _ in 0..<300 {
            let whole = try ConsensusRecord.random(using: &dice, listMax: 6).bytes()
            var bytes = whole
            let place = Int.random(in: 0..<bytes.count, using: &dice)
            if Bool.random(using: &dice) {
                bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &dice)
            } else {
                bytes.removeLast(bytes.count - place)
            }
            do throws(PeerFault) {
                let read = try ConsensusRecord.read(bytes.span, in: Self.kind)
                let again = (try? read.bytes()) ?? []
                #expect(try ConsensusRecord.read(again.span, in: Self.kind) == read)
                others += 1
            } catch {
                #expect([.truncated(Self.kind), .malformed(Self.kind)].contains(error))
                faults += 1
            }
        }
        #expect(faults > 50 && others > 50)
    }

    @Test("A record above a limit is neither encoded nor decoded")
    func limits() throws {
        func nodes(_ count: Int) -> [NodeID] {
            (1...UInt64(count)).map { NodeID(low: $0, high: 0) }
        }
        let most = nodes(VoterSet.membersMax)
        let set = try #require(VoterSet(founder: most[0], generation: 9, members: most))
        var bytes = try set.bytes()
        #expect(try VoterSet.read(bytes.span, in: Self.kind) == set)
        #expect(set.applying(by: .add(NodeID(low: 0, high: 9))) == nil)
        let more = nodes(VoterSet.membersMax + 1)
        let bigger = try #require(VoterSet(founder: most[0], generation: 9, members: more))
        #expect(throws: InvalidationFault.tooLong) { try bigger.bytes() }
        bytes += bytes.suffix(16)
        let size = UInt16(more.count * 16)
        bytes[28] = UInt8(truncatingIfNeeded: size)
        bytes[29] = UInt8(truncatingIfNeeded: size >> 8)
        #expect(throws: PeerFault.tooLong(.list)) {
            try VoterSet.read(bytes.span, in: Self.kind)
        }
        let ballot = Ballot(round: 1, proposer: most[0])
        let holds = Array(
            repeating: StreamPosition(process: ProcessID(high: 1, low: 1), count: 1),
            count: ConsensusRecord.positionsMax + 1)
        let vote = ConsensusRecord(
            base: set, member: most[0], ballot: ballot,
            body: .vote(.remove([most[1]]), synced: holds))
        #expect(throws: InvalidationFault.tooLong) { try vote.bytes() }
    }

    @Test("Repeated known fields and numbers that cannot be incremented are faults")
    func strict() throws {
        let set = VoterSet(foundedBy: NodeID(low: 1, high: 2))
        let bytes = try set.bytes()
        let twice = bytes + bytes.suffix(20)
        #expect(throws: PeerFault.malformed(Self.kind)) {
            try VoterSet.read(twice.span, in: Self.kind)
        }
        var far = bytes
        far.setLittle(.max, at: 2)
        #expect(throws: PeerFault.malformed(Self.kind)) {
            try VoterSet.read(far.span, in: Self.kind)
        }
        var ballot = try Ballot(round: 1, proposer: NodeID(low: 1, high: 2)).bytes()
        for round in [0, UInt64.max] {
            ballot.setLittle(round, at: 2)
            #expect(throws: PeerFault.malformed(Self.kind)) {
                try Ballot.read(ballot.span, in: Self.kind)
            }
        }
        let unknown = bytes + [9, 0, 1, 0, 5]
        #expect(try VoterSet.read(unknown.span, in: Self.kind) == set)
    }
}
