package import Ground

extension PeerLink {
    /// A frame came whole, any but DATA.
    ///
    /// - Throws: what is wrong with it; the link then leaves with a ``Goodbye``.
    package mutating func frameArrived(
        _ head: PeerFrameHead, payload: Span<UInt8>, now: Instant
    ) throws(PeerFault) -> PeerEvent {
        precondition(head.kind != .data && head.payloadBytes == payload.count)
        do throws(PeerFault) {
            switch state {
            case .greeting: return try greeted(head, payload)
            case .open: return try received(head, payload, now)
            case .leaving, .ended: return .nothing
            }
        } catch {
            fail(error)
            throw error
        }
    }

    /// The head of a DATA frame came; what it says of its payload is to be done with it.
    ///
    /// - Throws: what is wrong with it; the link then leaves with a ``Goodbye``.
    package mutating func dataArrived(_ head: PeerFrameHead) throws(PeerFault) -> DataArrival {
        do throws(PeerFault) {
            switch state {
            case .greeting: throw .helloMissing
            case .open: return try receivedData(head)
            case .leaving, .ended: return .discard(bytesCount: head.payloadBytes)
            }
        } catch {
            fail(error)
            throw error
        }
    }

    /// A head was no head; the link then leaves with a ``Goodbye``.
    package mutating func headFailed(_ fault: PeerFault) {
        fail(fault)
    }

    private mutating func greeted(
        _ head: PeerFrameHead, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        guard head.stream == 0 else { throw .helloMissing }
        switch head.kind {
        case .hello: break
        case .goodbye: return try left(payload)
        default: throw .helloMissing
        }
        let own = hello.member
        let theirs = try Hello(payload: payload, own: own.versions)
        guard theirs.member.process != own.process else { throw .ownProcess }
        guard let version = PeerProtocol.common(own.versions, theirs.member.versions) else {
            throw .noCommonVersion(theirs.member.versions)
        }
        peerLimits = theirs.limits
        state = .open(version: version)
        return .met(theirs, version: version)
    }

    private mutating func left(_ payload: Span<UInt8>) throws(PeerFault) -> PeerEvent {
        let goodbye = try Goodbye(payload: payload)
        state = .ended
        return .left(goodbye)
    }

    private mutating func received(
        _ head: PeerFrameHead, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        guard !head.kind.isOfConnection || head.stream == 0 else {
            throw .streamNamed(head.kind)
        }
        switch head.kind {
        case .hello: throw .helloRepeated
        case .goodbye: return try left(payload)
        case .gossip: return try Gossip.read(payload: payload).map { .gossiped($0) } ?? .nothing
        case .touches: return .touched(try AgedTouch.read(payload: payload))
        case .offer: return .offered(try PeerOffer.read(payload: payload))
        case .offerAnswered: return .offersAnswered(try OfferVerdict.read(payload: payload))
        case .ask: return try receivedQuestion(head.stream, payload)
        case .credit: return try receivedCredit(head.stream, payload, now)
        case .reset: return try receivedReset(head.stream, payload, now)
        case .end: return try receivedEnd(head.stream, payload)
        default: break
        }
        if head.kind.isOfInvalidations {
            return try invalidations.read(head.kind, payload: payload).map { .heard($0) }
                ?? .nothing
        }
        if let answer = try PeerAnswer.read(head.kind, payload: payload) {
            return try receivedAnswer(head.stream, answer, head.kind)
        }
        skippedFrames += 1
        try spend(now)
        return .nothing
    }

    private mutating func spend(_ now: Instant) throws(PeerFault) {
        guard allowance.spend(at: now) else { throw .flood }
    }
}

// MARK: What concerns the questions of the peer.

extension PeerLink {
    /// True for the numbers of streams that the peer opens.
    private func isPeers(_ stream: UInt32) -> Bool {
        stream > 0 && stream % 2 == (side == .dialling ? 0 : 1)
    }

    private mutating func receivedQuestion(
        _ stream: UInt32, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        guard isPeers(stream), stream > lastPeerStream else { throw .streamOutOfOrder(stream) }
        guard answering.count < Int(hello.limits.streamsMax) else { throw .tooManyStreams }
        lastPeerStream = stream
        let question = try PeerQuestion.read(payload: payload)
        answering[stream] = AnsweringStream(windowBytes: peerLimits.windowBytes)
        guard let question else {
            _ = try? answer(.fetchYourself(.notUnderstood), on: stream)
            return .nothing
        }
        return .asked(stream: stream, question)
    }

    private mutating func receivedCredit(
        _ stream: UInt32, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        let count = try StreamCredit.read(payload: payload)
        guard isPeers(stream), stream <= lastPeerStream else { throw .streamNotOpen(stream) }
        guard let isWithin = answering[stream]?.granted(count) else {
            // It was on its way when the last frame went.
            try spend(now)
            return .nothing
        }
        guard isWithin else { throw .creditOverflow(stream) }
        lineUp(stream)
        return .nothing
    }

    private mutating func receivedReset(
        _ stream: UInt32, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        let code = try StreamReset.read(payload: payload)
        guard isPeers(stream) else { return try brokenOff(stream, code) }
        guard stream <= lastPeerStream else { throw .streamNotOpen(stream) }
        try spend(now)
        guard answering.removeValue(forKey: stream) != nil else { return .nothing }
        enqueue(StreamReset.frame(.cancelled, stream: stream))
        return .cancelled(stream: stream)
    }
}

// MARK: What concerns the questions of this side.

extension PeerLink {
    private mutating func receivedAnswer(
        _ stream: UInt32, _ answer: PeerAnswer, _ kind: PeerFrameKind
    ) throws(PeerFault) -> PeerEvent {
        guard let place = asked.index(forKey: stream) else { throw .streamNotOpen(stream) }
        guard asked.values[place].answered(answer) else { throw .outOfPlace(kind) }
        let isCancelled = asked.values[place].isCancelled
        if answer.isFinal { asked.remove(at: place) }
        return isCancelled ? .nothing : .answered(stream: stream, answer)
    }

    private mutating func receivedData(_ head: PeerFrameHead) throws(PeerFault) -> DataArrival {
        guard head.payloadBytes > 0 else { throw .empty(.data) }
        guard let place = asked.index(forKey: head.stream) else {
            throw .streamNotOpen(head.stream)
        }
        try asked.values[place].dataArrived(head.payloadBytes, on: head.stream)
        return asked.values[place].isCancelled
            ? .discard(bytesCount: head.payloadBytes)
            : .deliver(stream: head.stream, bytesCount: head.payloadBytes)
    }

    private mutating func receivedEnd(
        _ stream: UInt32, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        let end = try StreamEnd(payload: payload)
        guard let place = asked.index(forKey: stream) else { throw .streamNotOpen(stream) }
        let question = asked.values[place]
        try question.ended(end, on: stream)
        asked.remove(at: place)
        return question.isCancelled ? .nothing : .ended(stream: stream, end)
    }

    private mutating func brokenOff(
        _ stream: UInt32, _ code: StreamReset.Code
    ) throws(PeerFault) -> PeerEvent {
        guard let question = asked.removeValue(forKey: stream) else {
            throw .streamNotOpen(stream)
        }
        return question.isCancelled ? .nothing : .broken(stream: stream, code)
    }
}
