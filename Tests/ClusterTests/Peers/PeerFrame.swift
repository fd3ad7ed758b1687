import Cluster
import Ground

/// The decoded content of any frame but DATA.
enum PeerFrame: Hashable {
    case hello(Hello)
    case goodbye(Goodbye)
    case gossip(Gossip)
    case touches([AgedTouch])
    case offers([PeerOffer])
    case outcomes([OfferOutcome])
    case summary(MemberSummary)
    /// A message that fits in one frame.
    case invalidations(InvalidationMessage)
    case question(PeerQuery)
    case answer(PeerReply)
    case end(StreamEnd)
    case reset(StreamReset.Code)
    case credit(UInt32)

    /// The encoded frame on `stream`; of gossip the first frame.
    func bytes(stream: UInt32 = 7) throws -> [UInt8] {
        switch self {
        case .hello(let hello): hello.frame
        case .goodbye(let goodbye): goodbye.frame
        case .gossip(let gossip): gossip.frames[0]
        case .touches(let touches): try AgedTouch.frame(touches)
        case .offers(let offers): try PeerOffer.frame(offers)
        case .outcomes(let outcomes): try OfferOutcome.frame(outcomes)
        case .summary(let summary): summary.frame
        case .invalidations(let message): try message.frames()[0]
        case .question(let question): try question.frame(stream: stream)
        case .answer(let response): try response.frame(stream: stream)
        case .end(let end): end.frame(stream: stream)
        case .reset(let code): StreamReset.frame(code, stream: stream)
        case .credit(let count): StreamCredit.frame(count, stream: stream)
        }
    }

    /// Its kind, and its payload without the header.
    func parts(stream: UInt32 = 7) throws -> (kind: PeerFrameKind, payload: [UInt8]) {
        let bytes = try bytes(stream: stream)
        let kind = try PeerFrameHeader(bytes.span).kind
        return (kind, Array(bytes.dropFirst(PeerFrameHeader.bytesCount)))
    }

    /// Decodes the payload after the header in `bytes`; `nil` if it is skipped.
    static func read(_ bytes: [UInt8]) throws(PeerFault) -> PeerFrame? {
        let head = try PeerFrameHeader(bytes.span)
        guard bytes.count == PeerFrameHeader.bytesCount + head.payloadBytes else {
            throw .truncated(head.kind)
        }
        return try read(head.kind, Array(bytes.dropFirst(PeerFrameHeader.bytesCount)))
    }

    /// The fault of a payload of this kind; `nil` if it has none.
    static func fault(_ kind: PeerFrameKind, _ payload: [UInt8]) -> PeerFault? {
        do throws(PeerFault) {
            _ = try read(kind, payload)
            return nil
        } catch {
            return error
        }
    }

    /// Decodes a payload of this kind; `nil` if it is skipped.
    static func read(_ kind: PeerFrameKind, _ payload: [UInt8]) throws(PeerFault) -> PeerFrame? {
        let bytes = payload.span
        if kind.isInvalidationFrame {
            var reader = InvalidationMessageDecoder()
            return try reader.read(kind, payload: bytes).map { .invalidations($0) }
        }
        switch kind {
        case .hello: return .hello(try Hello(payload: bytes, own: PeerProtocol.versions))
        case .goodbye: return .goodbye(try Goodbye(payload: bytes))
        case .gossip: return try Gossip.read(payload: bytes).map { .gossip($0) }
        case .touches: return .touches(try AgedTouch.read(payload: bytes))
        case .offer: return .offers(try PeerOffer.read(payload: bytes))
        case .offerOutcomes: return .outcomes(try OfferOutcome.read(payload: bytes))
        case .summary: return .summary(try MemberSummary(payload: bytes))
        case .query: return try PeerQuery.read(payload: bytes).map { .question($0) }
        case .end: return .end(try StreamEnd(payload: bytes))
        case .reset: return .reset(try StreamReset.read(payload: bytes))
        case .credit: return .credit(try StreamCredit.read(payload: bytes))
        default: return try PeerReply.read(kind, payload: bytes).map { .answer($0) }
        }
    }
}
