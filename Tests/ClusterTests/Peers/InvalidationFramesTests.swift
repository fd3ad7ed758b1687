import Cluster
import Ground
import Testing
import Trials

@Suite("Frames about invalidations")
struct InvalidationFramesTests {
    /// The messages in `frames`, read in order on one connection.
    private func read(_ frames: [[UInt8]]) throws -> [InvalidationMessage] {
        var reader = InvalidationMessageDecoder()
        var messages: [InvalidationMessage] = []
        for frame in frames {
            let head = try PeerFrameHeader(frame.span)
            #expect(head.stream == 0 && head.kind.isInvalidationFrame)
            #expect(frame.count == head.payloadBytes + PeerFrameHeader.bytesCount)
            let payload = Array(frame.dropFirst(PeerFrameHeader.bytesCount))
            guard let message = try reader.read(head.kind, payload: payload.span) else {
                continue
            }
            messages.append(message)
        }
        return messages
    }

    @Test(
        "A message of any size decodes to the same message, with all its frames joined",
        arguments: Trials.seeds(1...4))
    func roundTrips(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        var severalSeen: Set<UInt8> = []
        for _ in 0..<400 {
            let message = InvalidationMessage.random(using: &dice, bytesMax: 800_000)
            let frames = try message.frames()
            let messages = try read(frames)
            if frames.count > 1 { severalSeen.insert(frames[0][4]) }
            if case .roundResponse = message { #expect(messages == [message]) }
            var whole = try #require(messages.first)
            for next in messages.dropFirst() { whole = try #require(whole.joined(next)) }
            #expect(whole == message)
        }
        #expect(severalSeen == [32, 33, 34, 36, 38])
    }

    @Test("A reply in many frames is complete with its last frame")
    func answer() throws {
        let positions = { (count: Int, low: UInt64) in
            (0..<UInt64(count)).map {
                StreamPosition(process: ProcessID(high: low, low: $0), count: $0 + 1)
            }
        }
        let response = InvalidationMessage.roundResponse(
            FenceResponse(
                round: 7, synced: positions(1_024, 1),
                view: VoterSetView(configuration: nil, hasVoted: false, isCurrent: true)),
            retired: positions(4_096, 2))
        let frames = try response.frames()
        #expect(frames.count > 2)
        #expect(try read(frames) == [response])
        #expect(try read(Array(frames.dropLast())) == [])
        // An unfinished message ends with its connection and is not part of another reply.
        let ping = try InvalidationMessage.roundRequest(1, digest: 2).frames()
        #expect(throws: PeerFault.unexpectedFrame(.round)) { try read(frames.dropLast() + ping) }
        #expect(try read(frames + ping) == [response, .roundRequest(1, digest: 2)])
    }

    @Test("A repair response names the covered ranges with the last of its records")
    func repair() throws {
        var dice = SplitMix64(seed: 8)
        let records = (0..<40).map { number in
            InvalidationRecord(
                RecordID(stream: PeerSamples.member.process, number: number + 1),
                content: (0..<5_000).map { _ in UInt8(truncatingIfNeeded: dice.next()) })
        }
        let ranges = (0..<PeerProtocol.rangesMax).map { _ in StreamRange.random(using: &dice) }
        let floors = ranges.map { StreamPosition(process: $0.process, count: 4) }
        let messages = try read(
            InvalidationMessage.repairResponse(
                RepairResponse(records: records, floors: floors, covered: ranges)
            ).frames())
        let responses = messages.compactMap { message -> RepairResponse? in
            if case .repairResponse(let response) = message { response } else { nil }
        }
        #expect(responses.count > 3 && responses.flatMap(\.records) == records)
        for response in responses.dropLast() {
            #expect(response.covered.isEmpty && response.floors.isEmpty)
        }
        #expect(responses.last?.covered == ranges && responses.last?.floors == floors)
    }

    @Test("Every frame of a confirmation names all members")
    func confirmation() throws {
        var dice = SplitMix64(seed: 9)
        let members = (0..<PeerProtocol.confirmationMembersMax).map { _ in NodeID(using: &dice) }
        let positions = (0..<5_000).map { _ in StreamPosition.random(using: &dice) }
        let view = VoterSetView.random(using: &dice)
        let message = InvalidationMessage.confirmation(positions, members: members, view: view)
        let messages = try read(message.frames())
        #expect(messages.count > 2)
        var found: [StreamPosition] = []
        for case .confirmation(let some, members, view) in messages { found += some }
        #expect(found == positions)
    }

    @Test("The longest possible record fits in a push and in a repair response")
    func longest() throws {
        // 65,536, less the fixed part, the field's header and the overhead of a record.
        let content = Array(repeating: UInt8(3), count: 65_536 - 2 - 4 - 34 - 4)
        let name = RecordID(stream: PeerSamples.member.process, number: 1)
        let record = InvalidationRecord(name, content: content)
        #expect(try read(InvalidationMessage.push([record]).frames()) == [.push([record])])
        let response = RepairResponse(records: [record])
        #expect(
            try read(InvalidationMessage.repairResponse(response).frames()) == [
                .repairResponse(response)
            ])
        let longer = InvalidationRecord(name, content: content + [1])
        #expect(throws: SendError.tooLong(.payload)) {
            try InvalidationMessage.push([longer]).frames()
        }
    }

    @Test("Messages above a limit are not sent")
    func limits() throws {
        func many<Element>(_ element: Element, _ count: Int) -> [Element] {
            Array(repeating: element, count: count + 1)
        }
        let ranges = many(PeerSamples.range, PeerProtocol.rangesMax)
        let floors = many(PeerSamples.position, PeerProtocol.rangesMax)
        let positions = many(PeerSamples.position, PeerProtocol.messagePositionsMax)
        let members = many(PeerSamples.member.id, PeerProtocol.confirmationMembersMax)
        let view = VoterSetView(configuration: nil, isCurrent: false)
        let refused: [(PeerLimit, InvalidationMessage)] = [
            (.ranges, .repairRequest(ranges)),
            (.ranges, .repairResponse(RepairResponse(covered: ranges))),
            (.ranges, .repairResponse(RepairResponse(floors: floors))),
            (.confirmationMembers, .confirmation([], members: members, view: view)),
            (
                .positions,
                .roundResponse(FenceResponse(round: 1, synced: positions, view: view), retired: [])
            ),
            (
                .positions,
                .roundResponse(FenceResponse(round: 1, synced: [], view: view), retired: positions)
            ),
        ]
        for (limit, message) in refused {
            #expect(throws: SendError.tooLong(limit)) { try message.frames() }
        }
    }

    @Test("Messages above a limit are a fault on arrival")
    func faults() throws {
        func fault(
            _ message: InvalidationMessage, repeated field: [UInt8], times: Int
        ) throws -> PeerFault? {
            var (kind, payload) = try PeerFrame.invalidations(message).parts()
            for _ in 0..<times { payload += field }
            return PeerFrame.fault(kind, payload)
        }
        let zeros = Array(repeating: UInt8(0), count: 16)
        let range = zeros + [1] + zeros.prefix(7) + [1] + zeros.prefix(7)
        let empty = RepairResponse()
        let faults: [(InvalidationMessage, [UInt8], Int, PeerLimit)] = [
            (.repairRequest([]), [1, 0, 32, 0] + range, 512, .ranges),
            (.repairResponse(empty), [3, 0, 32, 0] + range, 512, .ranges),
            (.repairResponse(empty), [2, 0, 24, 0] + zeros + zeros.prefix(8), 512, .ranges),
            (
                .confirmation(
                    [], members: [], view: VoterSetView(configuration: nil, isCurrent: false)),
                [2, 0, 16, 0] + zeros, 1_024, .confirmationMembers
            ),
        ]
        for (message, field, times, limit) in faults {
            #expect(try fault(message, repeated: field, times: times) == nil)
            #expect(try fault(message, repeated: field, times: times + 1) == .tooLong(limit))
        }
        // The limit of a reply applies to all its frames together.
        let most = Array(repeating: PeerSamples.position, count: PeerProtocol.messagePositionsMax)
        let view = VoterSetView(configuration: nil, isCurrent: false)
        var frames = try InvalidationMessage.roundResponse(
            FenceResponse(round: 1, synced: most, view: view), retired: most
        ).frames()
        #expect(try read(frames).count == 1)
        frames.insert(frames[0], at: 0)
        #expect(throws: PeerFault.tooLong(.positions)) { try read(frames) }
    }

    @Test("Empty ranges, damaged records and impossible voter sets are faults")
    func senseless() throws {
        var (kind, bytes) = try PeerFrame.invalidations(.repairRequest([PeerSamples.range])).parts()
        bytes[bytes.count - 8] = 4
        #expect(throws: PeerFault.malformed(.repairRequest)) { try PeerFrame.read(kind, bytes) }
        (kind, bytes) = try PeerFrame.invalidations(.push([PeerSamples.invalidation])).parts()
        bytes[bytes.count - 1] ^= 1
        #expect(throws: PeerFault.malformed(.invalidations)) { try PeerFrame.read(kind, bytes) }
        let configuration = VoterConfiguration(VoterSet(foundedBy: PeerSamples.member.id))
        let view = VoterSetView(configuration: configuration, isCurrent: false)
        let response = FenceResponse(round: nil, synced: [], view: view)
        (kind, bytes) = try PeerFrame.invalidations(.roundResponse(response, retired: [])).parts()
        // Generation 2 with the founder alone is possible, generation 0 is not.
        bytes[12 + 4 + 6 + 2] = 0
        #expect(throws: PeerFault.malformed(.roundReply)) { try PeerFrame.read(kind, bytes) }
    }

    @Test("A truncated or damaged frame is a fault, or a message that can be encoded")
    func damage() throws {
        var dice = SplitMix64(seed: 10)
        var (faults, others) = (0, 0)
        for _ in 0..<Trials.count(6_000) {
            let message = InvalidationMessage.random(using: &dice, bytesMax: 4_000)
            var (kind, payload) = try PeerFrame.invalidations(message).parts()
            let place = Int.random(in: 0..<payload.count, using: &dice)
            if Bool.random(using: &dice) {
                payload[place] ^= 1 << UInt8.random(in: 0..<8, using: &dice)
            } else {
                payload.removeLast(payload.count - place)
            }
            do throws(PeerFault) {
                guard case .invalidations(let found)? = try PeerFrame.read(kind, payload) else {
                    continue
                }
                let again = try? read(found.frames())
                #expect(again == [found])
                others += 1
            } catch {
                #expect([.truncated(kind), .malformed(kind)].contains(error))
                faults += 1
            }
        }
        #expect(faults > Trials.count(500) && others > Trials.count(500))
    }
}
