import Cluster
import Ground

/// Any frame but DATA, as what it says.
enum PeerFrame: Hashable {
    case hello(Hello)
    case goodbye(Goodbye)
    case gossip(Gossip)
    case touches([AgedTouch])
    case offers([PeerOffer])
    case verdicts([OfferVerdict])
    /// In one frame.
    case invalidations(InvalidationMessage)
    case question(PeerQuestion)
    case answer(PeerAnswer)
    case end(StreamEnd)
    case reset(StreamReset.Code)
    case credit(UInt32)

    /// The bytes on `stream`, of gossip those of its first frame.
    func bytes(stream: UInt32 = 7) throws -> [UInt8] {
        switch self {
        case .hello(let hello): hello.frame
        case .goodbye(let goodbye): goodbye.frame
        case .gossip(let gossip): gossip.frames[0]
        case .touches(let touches): try AgedTouch.frame(touches)
        case .offers(let offers): try PeerOffer.frame(offers)
        case .verdicts(let verdicts): try OfferVerdict.frame(verdicts)
        case .invalidations(let message): try message.frames()[0]
        case .question(let question): try question.frame(stream: stream)
        case .answer(let answer): try answer.frame(stream: stream)
        case .end(let end): end.frame(stream: stream)
        case .reset(let code): StreamReset.frame(code, stream: stream)
        case .credit(let count): StreamCredit.frame(count, stream: stream)
        }
    }

    /// Its kind, and its payload without the head.
    func parts(stream: UInt32 = 7) throws -> (kind: PeerFrameKind, payload: [UInt8]) {
        let bytes = try bytes(stream: stream)
        let kind = try PeerFrameHead(bytes.span).kind
        return (kind, Array(bytes.dropFirst(PeerFrameHead.bytesCount)))
    }

    /// What the payload behind the head of `bytes` says; nil if it is skipped.
    static func read(_ bytes: [UInt8]) throws(PeerFault) -> PeerFrame? {
        let head = try PeerFrameHead(bytes.span)
        guard bytes.count == PeerFrameHead.bytesCount + head.payloadBytes else {
            throw .truncated(head.kind)
        }
        return try read(head.kind, Array(bytes.dropFirst(PeerFrameHead.bytesCount)))
    }

    /// The fault that a payload of this kind is, if it is one.
    static func fault(_ kind: PeerFrameKind, _ payload: [UInt8]) -> PeerFault? {
        do throws(PeerFault) {
            _ = try read(kind, payload)
            return nil
        } catch {
            return error
        }
    }

    /// What a payload of this kind says; nil if it is skipped.
    static func read(_ kind: PeerFrameKind, _ payload: [UInt8]) throws(PeerFault) -> PeerFrame? {
        let bytes = payload.span
        if kind.isOfInvalidations {
            var reader = InvalidationReader()
            return try reader.read(kind, payload: bytes).map { .invalidations($0) }
        }
        switch kind {
        case .hello: return .hello(try Hello(payload: bytes, own: PeerProtocol.versions))
        case .goodbye: return .goodbye(try Goodbye(payload: bytes))
        case .gossip: return try Gossip.read(payload: bytes).map { .gossip($0) }
        case .touches: return .touches(try AgedTouch.read(payload: bytes))
        case .offer: return .offers(try PeerOffer.read(payload: bytes))
        case .offerAnswered: return .verdicts(try OfferVerdict.read(payload: bytes))
        case .ask: return try PeerQuestion.read(payload: bytes).map { .question($0) }
        case .end: return .end(try StreamEnd(payload: bytes))
        case .reset: return .reset(try StreamReset.read(payload: bytes))
        case .credit: return .credit(try StreamCredit.read(payload: bytes))
        default: return try PeerAnswer.read(kind, payload: bytes).map { .answer($0) }
        }
    }
}
