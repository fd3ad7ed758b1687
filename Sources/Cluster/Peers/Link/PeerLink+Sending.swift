extension PeerLink {
    /// Sends a membership message with this node's stream positions, ahead of other frames.
    ///
    /// - Throws: ``SendError/notOpen`` or ``SendError/queueFull``.
    package mutating func send(_ gossip: Gossip) throws(SendError) {
        guard isOpen else { throw .notOpen }
        guard urgent.bytesCount < Self.queueBytesMax else { throw .queueFull }
        for frame in gossip.frames { urgent.append(frame) }
    }

    /// Sends touches, offers or outcomes of offers, at most as many as fit in one frame.
    ///
    /// - Throws: The reason why nothing is sent.
    package mutating func send<Element: BatchElement>(_ batch: [Element]) throws(SendError) {
        try checkRoom()
        control.append(try Element.frame(batch))
    }

    /// Sends this node's summary.
    ///
    /// - Throws: The reason why nothing is sent.
    package mutating func send(_ summary: MemberSummary) throws(SendError) {
        try checkRoom()
        control.append(summary.frame)
    }

    /// Sends a message about invalidations, after everything queued and before any later query.
    ///
    /// An open connection never refuses it for lack of queue capacity, since it is not sent again.
    /// Instead the connection of a peer that reads nothing for long is closed.
    ///
    /// - Throws: The reason why nothing is sent.
    package mutating func send(_ message: InvalidationMessage) throws(SendError) {
        try send(try EncodedInvalidationMessage(message))
    }

    /// Sends a message about invalidations that was encoded once for several peers.
    ///
    /// Uses the short form of a confirmation if the one before, on this connection, had the same
    /// members and voter set, and the peer has shown that it understands digests.
    ///
    /// - Throws: The reason why nothing is sent.
    package mutating func send(_ encoded: EncodedInvalidationMessage) throws(SendError) {
        guard isOpen else { throw .notOpen }
        let isKnown =
            encoded.membershipDigest == sentMembershipDigest
            && invalidationDecoder.peerSupportsDigests
        let frames =
            encoded.membershipDigest == nil || isKnown
            ? encoded.frames : try encoded.message.frames()
        sentMembershipDigest = encoded.membershipDigest ?? sentMembershipDigest
        for frame in frames { enqueue(frame) }
    }

    /// Throws unless the link is open and its queue is below ``queueBytesMax``.
    private func checkRoom() throws(SendError) {
        guard isOpen else { throw .notOpen }
        guard queuedBytes < Self.queueBytesMax else { throw .queueFull }
    }

    /// Queues a frame that must not be refused; ends the connection if the queue exceeds
    /// ``queueBytesLimit``.
    mutating func enqueue(_ frame: [UInt8]) {
        control.append(frame)
        if queuedBytes > Self.queueBytesLimit { fail(.slowReader) }
    }
}

// MARK: Queries

extension PeerLink {
    /// Sends a query and returns its stream.
    ///
    /// - Throws: The reason why it is not sent.
    package mutating func sendQuery(_ query: PeerQuery) throws(SendError) -> UInt32 {
        try checkRoom()
        guard outboundQueries.count < Int(peerLimits.streamsMax) else { throw .tooManyStreams }
        guard queriesRemaining > 0 else { throw .streamIDsExhausted }
        let stream = UInt32(nextStream)
        control.append(try query.frame(stream: stream))
        nextStream += 2
        outboundQueries[stream] = OutboundQuery(windowBytes: hello.limits.windowBytes)
        return stream
    }

    /// Cancels the query on `stream`: no further event names it.
    ///
    /// Does nothing if the stream has ended.
    package mutating func cancel(_ stream: UInt32) {
        guard isOpen, let query = outboundQueries[stream], !query.isCancelled else { return }
        outboundQueries[stream]?.isCancelled = true
        enqueue(StreamReset.frame(.cancelled, stream: stream))
    }

    /// Records that `bytesCount` delivered bytes on `stream` were consumed, which may grant more.
    ///
    /// Does nothing if the stream has ended.
    package mutating func bytesConsumed(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = outboundQueries.index(forKey: stream) else { return }
        let grant = outboundQueries.values[place].bytesConsumed(bytesCount)
        guard grant > 0 else { return }
        urgent.append(StreamCredit.frame(grant, stream: stream))
        if queuedBytes > Self.queueBytesLimit { fail(.slowReader) }
    }
}

// MARK: Responses

extension PeerLink {
    /// Sends a response to the query on `stream`; a final response closes the stream.
    ///
    /// FETCHING and interim responses are omitted while the queue is congested.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for a response that does not fit into a frame,
    ///   ``SendError/queueFull`` for HELD and NOT_MODIFIED (a refusal is always accepted),
    ///   ``SendError/streamClosed``, and ``SendError/invalidState`` after HELD.
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

    /// Reports that the shell has `bytesCount` further bytes of the body on `stream`.
    ///
    /// More bytes than announced, or any before HELD, abort the stream. Does nothing if the stream
    /// has ended.
    package mutating func addBodyBytes(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = inboundQueries.index(forKey: stream) else { return }
        guard inboundQueries.values[place].addReadyBytes(bytesCount) else {
            reset(stream, .incompleteBody)
            return
        }
        schedule(stream)
    }

    /// Reports that the body on `stream` has no further bytes; `trailers` are sent after it.
    ///
    /// Must follow HELD. END follows the last byte, or RESET if the body is shorter than announced.
    /// Does nothing if the stream has ended.
    package mutating func completeBody(on stream: UInt32, trailers: [UInt8] = []) {
        guard isOpen, let place = inboundQueries.index(forKey: stream) else { return }
        inboundQueries.values[place].completeBody(trailers: trailers)
        finishIfComplete(stream)
    }

    /// Aborts the response on `stream`; bytes that are ready are not sent.
    ///
    /// Does nothing if the stream has ended.
    package mutating func reset(_ stream: UInt32, _ code: StreamReset.Code) {
        guard isOpen, inboundQueries.removeValue(forKey: stream) != nil else { return }
        enqueue(StreamReset.frame(code, stream: stream))
    }

    /// Appends the stream to the round-robin queue if it has bytes to send and is not queued.
    mutating func schedule(_ stream: UInt32) {
        guard let place = inboundQueries.index(forKey: stream),
            inboundQueries.values[place].hasSendableBytes, !inboundQueries.values[place].isScheduled
        else { return }
        inboundQueries.values[place].isScheduled = true
        readyStreams.append(stream)
    }

    /// Ends the stream once all of its body is sent: with END, or with RESET if the body is shorter
    /// than announced.
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

// MARK: Output

extension PeerLink {
    /// Returns what to send next.
    ///
    /// Urgent frames come first, then other frames without a body, then one DATA frame of each
    /// stream in turn. So an urgent frame waits for one frame at most, and a stream with a slow
    /// reader delays no other.
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

    /// Returns the next DATA frame of the stream whose turn it is, or ``PeerOutput/idle``; queues
    /// the stream's END after its last byte.
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
