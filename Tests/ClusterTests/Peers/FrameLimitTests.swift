import Cluster
import Ground
import Testing

@Suite("Limits of frames")
struct FrameLimitTests {
    private func fault(_ kind: PeerFrameKind, payloadBytes: UInt32) -> PeerFault? {
        var bytes: [UInt8] = []
        bytes.appendLittle(payloadBytes)
        bytes += [kind.rawValue, 0, 0, 0, 1, 0, 0, 0]
        do throws(PeerFault) {
            _ = try PeerFrameHeader(bytes.span)
            return nil
        } catch {
            return error
        }
    }

    private func refusal(_ frame: PeerFrame) throws -> SendError? {
        do {
            // Whatever may be sent may be received.
            let bytes = try frame.bytes()
            #expect(try PeerFrame.read(bytes) == frame)
            return nil
        } catch let refusal as SendError {
            return refusal
        }
    }

    /// The fault of a payload with these fields after those of `frame`.
    private func fault(
        _ frame: PeerFrame, with fields: [(tag: UInt16, value: [UInt8])]
    ) throws -> PeerFault? {
        var (kind, payload) = try frame.parts()
        for field in fields {
            payload.appendLittle(field.tag)
            payload.appendLittle(UInt16(field.value.count))
            payload += field.value
        }
        return PeerFrame.fault(kind, payload)
    }

    @Test("A frame above its limit is a fault at its header")
    func frames() {
        #expect(fault(.data, payloadBytes: 16_384) == nil)
        #expect(fault(.data, payloadBytes: 16_385) == .tooLong(.data))
        for kind in [.hello, .held, .gossip, PeerFrameKind(rawValue: 200)] as [PeerFrameKind] {
            #expect(fault(kind, payloadBytes: 65_536) == nil)
            #expect(fault(kind, payloadBytes: 65_537) == .tooLong(.payload))
            #expect(fault(kind, payloadBytes: .max) == .tooLong(.payload))
        }
    }

    @Test("Every part of a query has a limit, and all at their limits fit in a frame")
    func questions() throws {
        var full = PeerSamples.question
        full.key = Array(repeating: 1, count: 16_384)
        full.request = Array(repeating: 2, count: 32_768)
        full.entityTag = Array(repeating: 3, count: 1_024)
        full.positions = Array(repeating: PeerSamples.position, count: 256)
        full.invalidations = [Array(repeating: 4, count: 4_096 - 8), []]
        full.trace.requestID = Array(repeating: 5, count: 128)
        full.trace.traceParent = Array(repeating: 6, count: 128)
        full.trace.traceState = Array(repeating: 7, count: 512)
        #expect(try refusal(.question(full)) == nil)
        let above: [(PeerLimit, (inout PeerQuery) -> Void)] = [
            (.key, { $0.key.append(1) }), (.request, { $0.request.append(1) }),
            (.entityTag, { $0.entityTag.append(1) }),
            (.requestTrace, { $0.trace.requestID.append(1) }),
            (.requestTrace, { $0.trace.traceParent.append(1) }),
            (.requestTrace, { $0.trace.traceState.append(1) }),
            (.positions, { $0.positions.append(PeerSamples.position) }),
            (.invalidations, { $0.invalidations.append([]) }),
        ]
        for (limit, change) in above {
            var question = full
            change(&question)
            #expect(try refusal(.question(question)) == .tooLong(limit))
        }
        let fields: [(PeerLimit, UInt16, Int)] = [
            (.key, 1, 16_385), (.request, 2, 32_769), (.entityTag, 3, 1_025),
            (.invalidations, 5, 4_093), (.requestTrace, 6, 129), (.requestTrace, 7, 129),
            (.requestTrace, 8, 513),
        ]
        for (limit, tag, count) in fields {
            let field = (tag: tag, value: [UInt8](repeating: 1, count: count))
            #expect(try fault(.question(PeerSamples.question), with: [field]) == .tooLong(limit))
        }
        let position = (tag: UInt16(4), value: [UInt8](repeating: 1, count: 24))
        let many = Array(repeating: position, count: 256)
        #expect(try fault(.question(PeerSamples.question), with: many) == .tooLong(.positions))
    }

    @Test("An entry has limits on its key, its tags and its whole frame")
    func entries() throws {
        var entry = PeerSamples.entry
        entry.tags = Array(repeating: [1], count: 1_000)
        entry.key = Array(repeating: 1, count: 16_384)
        #expect(try refusal(.answer(.held(entry))) == nil)
        entry.tags.append([])
        #expect(try refusal(.answer(.held(entry))) == .tooLong(.tags))
        entry.tags = []
        entry.key.append(1)
        #expect(try refusal(.answer(.held(entry))) == .tooLong(.key))
        (entry.key, entry.headOffsets) = ([], nil)
        entry.head += Array(repeating: 1, count: 65_536 - 88 - 4 - entry.head.count)
        #expect(try refusal(.answer(.held(entry))) == nil)
        entry.head.append(1)
        #expect(try refusal(.answer(.held(entry))) == .tooLong(.payload))
        entry = PeerSamples.entry
        entry.facts.entityTag = Extent(start: entry.head.count, count: 1)
        #expect(try refusal(.answer(.held(entry))) == .tooLong(.payload))
        let tags = Array(repeating: (tag: UInt16(2), value: [UInt8(1)]), count: 999)
        #expect(try fault(.answer(.held(PeerSamples.entry)), with: tags) == .tooLong(.tags))
        let key = (tag: UInt16(3), value: [UInt8](repeating: 1, count: 16_385))
        #expect(try fault(.answer(.held(PeerSamples.entry)), with: [key]) == .tooLong(.key))
    }

    @Test("A batch of touches or offers has a limit")
    func batches() throws {
        var dice = SplitMix64(seed: 3)
        var touches = (0..<1_024).map { _ in AgedTouch.random(using: &dice) }
        var offers = (0..<512).map { _ in PeerOffer.random(using: &dice) }
        var outcomes = (0..<512).map { _ in OfferOutcome.random(using: &dice) }
        #expect(try refusal(.touches(touches)) == nil)
        #expect(try refusal(.offers(offers)) == nil)
        #expect(try refusal(.outcomes(outcomes)) == nil)
        let more = (tag: UInt16(1), value: [UInt8](repeating: 1, count: 60))
        #expect(try fault(.touches(touches), with: [more]) == .tooLong(.touches))
        #expect(try fault(.offers(offers), with: [more]) == .tooLong(.offers))
        #expect(try fault(.outcomes(outcomes), with: [more]) == .tooLong(.offers))
        touches.append(touches[0])
        offers.append(offers[0])
        outcomes.append(outcomes[0])
        #expect(try refusal(.touches(touches)) == .tooLong(.touches))
        #expect(try refusal(.offers(offers)) == .tooLong(.offers))
        #expect(try refusal(.outcomes(outcomes)) == .tooLong(.offers))
    }
}
