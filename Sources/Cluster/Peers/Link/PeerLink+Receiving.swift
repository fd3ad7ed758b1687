package import Ground

extension PeerLink {
    /// Handles a complete frame of any kind except DATA; ignores it once the link is closing.
    ///
    /// - Throws: The fault, if the frame breaks the protocol; the link then closes with a
    ///   ``Goodbye``.
    package mutating func frameReceived(
        _ head: PeerFrameHeader, payload: Span<UInt8>, now: Instant
    ) throws(PeerFault) -> PeerEvent {
        precondition(head.kind != .data && head.payloadBytes == payload.count)
        do throws(PeerFault) {
            switch state {
            case .awaitingHello: return try receivedHello(head, payload)
            case .open: return try received(head, payload, now)
            case .closing, .ended: return .ignored
            }
        } catch {
            fail(error)
            throw error
        }
    }

    /// Handles the header of a DATA frame and returns what to do with its payload: deliver it, or
    /// discard it if the query was cancelled or the link is closing.
    ///
    /// - Throws: The fault, if the frame breaks the protocol; the link then closes with a
    ///   ``Goodbye``.
    package mutating func dataReceived(_ head: PeerFrameHeader) throws(PeerFault) -> DataDisposition
    {
        do throws(PeerFault) {
            switch state {
            case .awaitingHello: throw .helloMissing
            case .open: return try receivedData(head)
            case .closing, .ended: return .discard(bytesCount: head.payloadBytes)
            }
        } catch {
            fail(error)
            throw error
        }
    }

    /// Reports that a frame header was invalid; the link then closes with a ``Goodbye``.
    package mutating func headerInvalid(_ fault: PeerFault) {
        fail(fault)
    }

    /// Opens the link with the peer's HELLO, the only first frame allowed except GOODBYE.
    private mutating func receivedHello(
        _ head: PeerFrameHeader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        guard head.stream == 0 else { throw .helloMissing }
        switch head.kind {
        case .hello: break
        case .goodbye: return try receivedGoodbye(payload)
        default: throw .helloMissing
        }
        let own = hello.member
        let theirs = try Hello(payload: payload, own: own.versions)
        guard theirs.member.process != own.process else { throw .selfConnection }
        guard let version = PeerProtocol.commonVersion(own.versions, theirs.member.versions) else {
            throw .noCommonVersion(theirs.member.versions)
        }
        peerLimits = theirs.limits
        state = .open(version: version)
        return .helloReceived(theirs, version: version)
    }

    /// Ends the link, because the peer closes the connection.
    private mutating func receivedGoodbye(_ payload: Span<UInt8>) throws(PeerFault) -> PeerEvent {
        let goodbye = try Goodbye(payload: payload)
        state = .ended
        return .goodbyeReceived(goodbye)
    }

    /// Handles a frame on an open link; frames of unknown kinds are counted and skipped.
    private mutating func received(
        _ head: PeerFrameHeader, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        guard !head.kind.isConnectionLevel || head.stream == 0 else {
            throw .streamOnConnectionFrame(head.kind)
        }
        switch head.kind {
        case .hello: throw .helloRepeated
        case .goodbye: return try receivedGoodbye(payload)
        case .gossip:
            return try Gossip.read(payload: payload).map { .gossipReceived($0) } ?? .ignored
        case .touches: return .touchesReceived(try AgedTouch.read(payload: payload))
        case .offer: return .offersReceived(try PeerOffer.read(payload: payload))
        case .offerOutcomes: return .offerOutcomesReceived(try OfferOutcome.read(payload: payload))
        case .summary:
            try chargeIdleFrame(now)
            return .summaryReceived(try MemberSummary(payload: payload))
        case .query: return try receivedQuery(head.stream, payload)
        case .credit: return try receivedCredit(head.stream, payload, now)
        case .reset: return try receivedReset(head.stream, payload, now)
        case .end: return try receivedEnd(head.stream, payload)
        default: break
        }
        if head.kind.isInvalidationFrame {
            return try invalidationDecoder.read(head.kind, payload: payload).map {
                .invalidationReceived($0)
            }
                ?? .ignored
        }
        if let response = try PeerReply.read(head.kind, payload: payload) {
            return try receivedReply(head.stream, response, head.kind)
        }
        skippedFrames += 1
        try chargeIdleFrame(now)
        return .ignored
    }

    /// Counts a frame without effect, of which too many are a fault.
    private mutating func chargeIdleFrame(_ now: Instant) throws(PeerFault) {
        guard floodLimiter.consume(at: now) else { throw .flood }
    }
}

// MARK: Queries from the peer

extension PeerLink {
    /// Returns true for the stream numbers that the peer opens.
    private func isPeerInitiated(_ stream: UInt32) -> Bool {
        stream > 0 && stream % 2 == (side == .dialling ? 0 : 1)
    }

    /// Opens the stream of the peer's query; declines a query of an unknown kind, without a report.
    private mutating func receivedQuery(
        _ stream: UInt32, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        guard isPeerInitiated(stream), stream > lastPeerStream else {
            throw .streamIDOutOfOrder(stream)
        }
        guard inboundQueries.count < Int(hello.limits.streamsMax) else { throw .tooManyStreams }
        lastPeerStream = stream
        let query = try PeerQuery.read(payload: payload)
        inboundQueries[stream] = InboundQuery(windowBytes: peerLimits.windowBytes)
        guard let query else {
            _ = try? sendReply(.declined(.notUnderstood), on: stream)
            return .ignored
        }
        return .queryReceived(stream: stream, query)
    }

    /// Adds the peer's grant to the body on `stream`; ignores a grant for an ended stream.
    private mutating func receivedCredit(
        _ stream: UInt32, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        let count = try StreamCredit.read(payload: payload)
        guard isPeerInitiated(stream), stream <= lastPeerStream else {
            throw .streamNotOpen(stream)
        }
        guard let isWithin = inboundQueries[stream]?.addCredit(count) else {
            // The grant crossed the stream's last frame.
            try chargeIdleFrame(now)
            return .ignored
        }
        guard isWithin else { throw .creditOverflow(stream) }
        schedule(stream)
        return .ignored
    }

    /// Ends a query by RESET: the peer's, which is acknowledged with another, or this side's.
    private mutating func receivedReset(
        _ stream: UInt32, _ payload: Span<UInt8>, _ now: Instant
    ) throws(PeerFault) -> PeerEvent {
        let code = try StreamReset.read(payload: payload)
        guard isPeerInitiated(stream) else { return try outboundQueryReset(stream, code) }
        guard stream <= lastPeerStream else { throw .streamNotOpen(stream) }
        try chargeIdleFrame(now)
        guard inboundQueries.removeValue(forKey: stream) != nil else { return .ignored }
        enqueue(StreamReset.frame(.cancelled, stream: stream))
        return .queryCancelled(stream: stream)
    }
}

// MARK: Queries to the peer

extension PeerLink {
    /// Handles the response to a query of this side; ignores one to a cancelled query.
    private mutating func receivedReply(
        _ stream: UInt32, _ response: PeerReply, _ kind: PeerFrameKind
    ) throws(PeerFault) -> PeerEvent {
        guard let place = outboundQueries.index(forKey: stream) else {
            throw .streamNotOpen(stream)
        }
        guard outboundQueries.values[place].replyReceived(response) else {
            throw .unexpectedFrame(kind)
        }
        let isCancelled = outboundQueries.values[place].isCancelled
        if response.isFinal { outboundQueries.remove(at: place) }
        return isCancelled ? .ignored : .replyReceived(stream: stream, response)
    }

    private mutating func receivedData(_ head: PeerFrameHeader) throws(PeerFault) -> DataDisposition
    {
        guard head.payloadBytes > 0 else { throw .emptyFrame(.data) }
        guard let place = outboundQueries.index(forKey: head.stream) else {
            throw .streamNotOpen(head.stream)
        }
        try outboundQueries.values[place].dataReceived(head.payloadBytes, on: head.stream)
        return outboundQueries.values[place].isCancelled
            ? .discard(bytesCount: head.payloadBytes)
            : .deliver(stream: head.stream, bytesCount: head.payloadBytes)
    }

    /// Ends the query whose body is complete, after a check of its length.
    private mutating func receivedEnd(
        _ stream: UInt32, _ payload: Span<UInt8>
    ) throws(PeerFault) -> PeerEvent {
        let end = try StreamEnd(payload: payload)
        guard let place = outboundQueries.index(forKey: stream) else {
            throw .streamNotOpen(stream)
        }
        let query = outboundQueries.values[place]
        try query.endReceived(end, on: stream)
        outboundQueries.remove(at: place)
        return query.isCancelled ? .ignored : .bodyEnded(stream: stream, end)
    }

    /// Ends this side's query that the peer has aborted; reports nothing if it was cancelled.
    private mutating func outboundQueryReset(
        _ stream: UInt32, _ code: StreamReset.Code
    ) throws(PeerFault) -> PeerEvent {
        guard let query = outboundQueries.removeValue(forKey: stream) else {
            throw .streamNotOpen(stream)
        }
        return query.isCancelled ? .ignored : .streamReset(stream: stream, code)
    }
}

/// A limit on frames without effect: resets, frames on ended streams, summaries, and frames of
/// unknown kinds.
///
/// Each costs the sender little and may cost the receiver a query that it has begun (as in HTTP/2,
/// CVE-2023-44487). A token bucket, full at first and refilled over time; its capacity allows for
/// the frames that queue up while the reader is paused.
struct FrameFloodLimiter: Sendable {
    private var remainingFrames = Self.framesMax
    private var refilledAt: Instant?

    /// The capacity of the bucket in frames.
    static let framesMax = 65_536
    /// The refill rate in frames per second.
    static let framesPerSecond = 16_384

    /// Counts a frame; returns false if it exceeds the limit.
    mutating func consume(at now: Instant) -> Bool {
        refill(now)
        guard remainingFrames > 0 else { return false }
        remainingFrames -= 1
        return true
    }

    /// Adds the frames allowed since the last refill, up to the capacity.
    private mutating func refill(_ now: Instant) {
        guard let last = refilledAt else {
            refilledAt = now
            return
        }
        // A minute fills the bucket in any case; the bound prevents an overflow.
        let elapsed = min((now - last).milliseconds, 60_000)
        let grown = Int(elapsed) * Self.framesPerSecond / 1_000
        guard grown > 0 else { return }
        remainingFrames = min(remainingFrames + grown, Self.framesMax)
        refilledAt = now
    }
}
