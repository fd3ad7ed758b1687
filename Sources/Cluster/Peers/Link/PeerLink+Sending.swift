extension PeerLink {
    /// Says what is believed of members, and how far this node has come.
    ///
    /// - Throws: ``SendError/notOpen`` or ``SendError/queueFull``.
    package mutating func send(_ gossip: Gossip) throws(SendError) {
        guard isOpen else { throw .notOpen }
        guard urgent.bytesCount < Self.queueBytesMax else { throw .queueFull }
        for frame in gossip.frames { urgent.append(frame) }
    }

    /// Says what was used here, at most ``PeerProtocol/touchesMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(touches: [AgedTouch]) throws(SendError) {
        try checkRoom()
        control.append(try AgedTouch.frame(touches))
    }

    /// Offers entries, at most ``PeerProtocol/offersMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(offers: [PeerOffer]) throws(SendError) {
        try checkRoom()
        control.append(try PeerOffer.frame(offers))
    }

    /// Says what became of offers, at most ``PeerProtocol/offersMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(verdicts: [OfferOutcome]) throws(SendError) {
        try checkRoom()
        control.append(try OfferOutcome.frame(verdicts))
    }

    /// Says something about invalidations, behind what waits and before any later question.
    ///
    /// While the connection is open it is not refused for want of room: nobody would say it again.
    /// A peer that reads none of it for long is cut off instead.
    ///
    /// - Throws: why nothing of it is sent.
    package mutating func send(_ message: InvalidationMessage) throws(SendError) {
        try send(try EncodedInvalidationMessage(message))
    }

    /// The same of a message whose frames were made before, for several peers.
    ///
    /// - Throws: why nothing of it is sent.
    package mutating func send(_ said: EncodedInvalidationMessage) throws(SendError) {
        guard isOpen else { throw .notOpen }
        let isKnown =
            said.membershipDigest == sentMembershipDigest && invalidationDecoder.peerSupportsDigests
        let frames =
            said.membershipDigest == nil || isKnown ? said.frames : try said.message.frames()
        sentMembershipDigest = said.membershipDigest ?? sentMembershipDigest
        for frame in frames { enqueue(frame) }
    }

    private func checkRoom() throws(SendError) {
        guard isOpen else { throw .notOpen }
        guard queuedBytes < Self.queueBytesMax else { throw .queueFull }
    }

    /// Puts a frame that cannot be refused behind those that wait.
    mutating func enqueue(_ frame: [UInt8]) {
        control.append(frame)
        if queuedBytes > Self.queueBytesLimit { fail(.slowReader) }
    }
}

// MARK: Asking

extension PeerLink {
    /// Asks; the stream on which the answer comes.
    ///
    /// - Throws: why it is not asked.
    package mutating func sendQuery(_ question: PeerQuery) throws(SendError) -> UInt32 {
        try checkRoom()
        guard outboundQueries.count < Int(peerLimits.streamsMax) else { throw .tooManyStreams }
        guard queriesRemaining > 0 else { throw .streamIDsExhausted }
        let stream = UInt32(nextStream)
        control.append(try question.frame(stream: stream))
        nextStream += 2
        outboundQueries[stream] = OutboundQuery(windowBytes: hello.limits.windowBytes)
        return stream
    }

    /// Wants no answer on `stream` any more: no event will name it.
    ///
    /// Nothing if it has ended.
    package mutating func cancel(_ stream: UInt32) {
        guard isOpen, let question = outboundQueries[stream], !question.isCancelled else { return }
        outboundQueries[stream]?.isCancelled = true
        enqueue(StreamReset.frame(.cancelled, stream: stream))
    }

    /// So many bytes that were delivered on `stream` are out of the way: others may come.
    ///
    /// Nothing if it has ended.
    package mutating func bytesConsumed(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = outboundQueries.index(forKey: stream) else { return }
        let grant = outboundQueries.values[place].bytesConsumed(bytesCount)
        guard grant > 0 else { return }
        urgent.append(StreamCredit.frame(grant, stream: stream))
        if queuedBytes > Self.queueBytesLimit { fail(.slowReader) }
    }
}

// MARK: Answering

extension PeerLink {
    /// Answers the question on `stream`; after a final answer the stream is closed.
    ///
    /// FETCHING, and interim answers, are left out while much waits.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for a head that does not fit,
    ///   ``SendError/queueFull`` for a head (a refusal of the question is always taken),
    ///   ``SendError/streamClosed``, ``SendError/outOfPlace`` after HELD.
    package mutating func sendReply(
        _ response: PeerReply, on stream: UInt32
    ) throws(SendError) {
        guard isOpen else { throw .notOpen }
        guard let place = inboundQueries.index(forKey: stream) else { throw .streamClosed }
        guard inboundQueries.values[place].state == .awaitingReply else { throw .invalidState }
        switch response {
        case .fetching where queuedBytes > Self.queueBytesCongested: return
        case .interim where queuedBytes > Self.queueBytesCongested: return
        case .held, .notModified:
            guard queuedBytes < Self.queueBytesMax else { throw .queueFull }
        default: break
        }
        let frame = try response.frame(stream: stream)
        if case .held(let entry) = response { inboundQueries.values[place].beginBody(entry) }
        if response.isFinal { inboundQueries.remove(at: place) }
        enqueue(frame)
    }

    /// The shell has `bytesCount` bytes more of the body that was announced on `stream`.
    ///
    /// More than was announced breaks it off. Nothing if it has ended.
    package mutating func addBodyBytes(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = inboundQueries.index(forKey: stream) else { return }
        guard inboundQueries.values[place].addReadyBytes(bytesCount) else {
            reset(stream, .incompleteBody)
            return
        }
        schedule(stream)
    }

    /// The shell has no more of the body on `stream`, behind which `trailers` are said.
    ///
    /// END goes behind the last of it; RESET, if it is shorter than announced. Nothing if the
    /// stream has ended.
    package mutating func completeBody(on stream: UInt32, trailers: [UInt8] = []) {
        guard isOpen, let place = inboundQueries.index(forKey: stream) else { return }
        inboundQueries.values[place].completeBody(trailers: trailers)
        finishIfComplete(stream)
    }

    /// Gives up the body, or the answer, on `stream`: what was ready and not sent is not sent.
    ///
    /// Nothing if it has ended.
    package mutating func reset(_ stream: UInt32, _ code: StreamReset.Code) {
        guard isOpen, inboundQueries.removeValue(forKey: stream) != nil else { return }
        enqueue(StreamReset.frame(code, stream: stream))
    }

    /// Puts the stream at the end of the line if it has something to send and is not in it.
    mutating func schedule(_ stream: UInt32) {
        guard let place = inboundQueries.index(forKey: stream),
            inboundQueries.values[place].hasSendableBytes, !inboundQueries.values[place].isScheduled
        else { return }
        inboundQueries.values[place].isScheduled = true
        readyStreams.append(stream)
    }

    private mutating func finishIfComplete(_ stream: UInt32) {
        switch inboundQueries[stream]?.completion {
        case .complete(let end):
            inboundQueries[stream] = nil
            enqueue(end.frame(stream: stream))
        case .truncated: reset(stream, .incompleteBody)
        case nil: break
        }
    }
}

// MARK: What goes next

extension PeerLink {
    /// What is to be sent next.
    ///
    /// Urgent frames come first, then what else is no body, then one frame of DATA of each stream
    /// in turn: so whatever is urgent waits for one frame at most, and a stream whose reader is
    /// slow holds up no other.
    package mutating func nextOutput() -> PeerOutput {
        if state == .ended { return .close }
        if let frame = urgent.takeFirst() ?? control.takeFirst() { return .control(frame) }
        switch state {
        case .awaitingHello: return .idle
        case .open: return nextData()
        case .closing, .ended:
            state = .ended
            return .close
        }
    }

    private mutating func nextData() -> PeerOutput {
        let bytesMax = min(PeerProtocol.dataBytesMax, Int(peerLimits.dataBytesMax))
        while let stream = readyStreams.takeFirst() {
            guard let place = inboundQueries.index(forKey: stream) else { continue }
            inboundQueries.values[place].isScheduled = false
            let count = inboundQueries.values[place].takeSendableBytes(bytesMax: bytesMax)
            schedule(stream)
            finishIfComplete(stream)
            return .data(PeerFrameHeader(.data, stream: stream, payloadBytes: count))
        }
        return .idle
    }
}
