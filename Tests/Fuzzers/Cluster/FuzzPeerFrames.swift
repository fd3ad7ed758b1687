import Cluster
import Ground

/// Bytes from a peer: the first byte selects a single payload or a whole connection, and the state
/// of the connection when the bytes begin.
///
/// Invariants: no bytes trap; a parsed payload is the same after it was written and read again, and
/// so is a message about invalidations of any number of frames; a connection never counts more
/// streams than it announced, ends every query that it had, and after a fault sends GOODBYE and
/// nothing else; see ``ExchangeUnderTest``, too.
func fuzzPeerFrames(_ input: [UInt8]) {
    let rest = Array(input[2...])
    if input[0] & 1 == 0 {
        let kind = PeerFrameKind(rawValue: input[1])
        readPayload(kind, rest)
        readPayload(kind, sealedRecords(kind, rest))
    } else {
        var end = PeerUnderTest(scene: input[0] >> 1, takesOneIn: Int(input[1] & 7) + 1)
        end.feed(rest)
        end.finish()
    }
}

/// Reads, writes and reads again.
private func readPayload(_ kind: PeerFrameKind, _ payload: [UInt8]) {
    guard !kind.isInvalidationFrame else { return readInvalidations(kind, payload) }
    guard let frame = written(kind, payload) else { return }
    let again = written(kind, Array(frame.dropFirst(PeerFrameHeader.bytesCount)))
    precondition(again == frame, "a frame is another after it was written again")
}

/// Returns the payload as it is written after it was read; `nil` if it is not understood.
private func written(_ kind: PeerFrameKind, _ payload: [UInt8]) -> [UInt8]? {
    let bytes = payload.span
    switch kind {
    case .hello: return (try? Hello(payload: bytes, own: PeerProtocol.versions))?.frame
    case .goodbye: return (try? Goodbye(payload: bytes))?.frame
    case .gossip:
        let frames = (try? Gossip.read(payload: bytes))??.frames
        precondition(frames?.count ?? 1 == 1, "one frame has become several")
        return frames?.first
    case .touches: return (try? AgedTouch.read(payload: bytes)).flatMap { try? AgedTouch.frame($0) }
    case .offer: return (try? PeerOffer.read(payload: bytes)).flatMap { try? PeerOffer.frame($0) }
    case .offerOutcomes:
        return (try? OfferOutcome.read(payload: bytes)).flatMap { try? OfferOutcome.frame($0) }
    case .summary: return (try? MemberSummary(payload: bytes))?.frame
    case .query:
        guard let query = try? PeerQuery.read(payload: bytes) else { return nil }
        return try? query.frame(stream: 1)
    case .end: return (try? StreamEnd(payload: bytes))?.frame(stream: 1)
    case .reset:
        return (try? StreamReset.read(payload: bytes)).map { StreamReset.frame($0, stream: 1) }
    case .credit:
        return (try? StreamCredit.read(payload: bytes)).map { StreamCredit.frame($0, stream: 1) }
    default:
        guard let reply = try? PeerReply.read(kind, payload: bytes) else { return nil }
        return try? reply.frame(stream: 1)
    }
}
