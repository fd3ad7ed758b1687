extension PeerLink {
    /// Says what is believed of members, and how far this node has come.
    ///
    /// - Throws: ``SendRefusal/notOpen`` or ``SendRefusal/queueFull``.
    package mutating func send(_ gossip: Gossip) throws(SendRefusal) {
        guard isOpen else { throw .notOpen }
        guard urgent.bytesCount < Self.queueBytesMax else { throw .queueFull }
        for frame in gossip.frames { urgent.append(frame) }
    }

    /// Says what was used here, at most ``PeerProtocol/touchesMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(touches: [AgedTouch]) throws(SendRefusal) {
        try checkRoom()
        control.append(try AgedTouch.frame(touches))
    }

    /// Offers entries, at most ``PeerProtocol/offersMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(offers: [PeerOffer]) throws(SendRefusal) {
        try checkRoom()
        control.append(try PeerOffer.frame(offers))
    }

    /// Says what became of offers, at most ``PeerProtocol/offersMax``.
    ///
    /// - Throws: why it is not sent.
    package mutating func send(verdicts: [OfferVerdict]) throws(SendRefusal) {
        try checkRoom()
        control.append(try OfferVerdict.frame(verdicts))
    }

    /// Says something about invalidations, behind what waits and before any later question.
    ///
    /// While the connection is open it is not refused for want of room: nobody would say it again.
    /// A peer that reads none of it for long is cut off instead.
    ///
    /// - Throws: why nothing of it is sent.
    package mutating func send(_ message: InvalidationMessage) throws(SendRefusal) {
        try send(try SaidMessage(message))
    }

    /// The same of a message whose frames were made before, for several peers.
    ///
    /// - Throws: why nothing of it is sent.
    package mutating func send(_ said: SaidMessage) throws(SendRefusal) {
        guard isOpen else { throw .notOpen }
        let isKnown = said.company == toldCompany && invalidations.hearsDigests
        let frames =
            said.company == nil || isKnown ? said.frames : try said.message.frames()
        toldCompany = said.company ?? toldCompany
        for frame in frames { enqueue(frame) }
    }

    private func checkRoom() throws(SendRefusal) {
        guard isOpen else { throw .notOpen }
        guard queuedBytes < Self.queueBytesMax else { throw .queueFull }
    }

    /// Puts a frame that cannot be refused behind those that wait.
    mutating func enqueue(_ frame: [UInt8]) {
        control.append(frame)
        if queuedBytes > Self.queueBytesEnd { fail(.notReading) }
    }
}

// MARK: Asking

extension PeerLink {
    /// Asks; the stream on which the answer comes.
    ///
    /// - Throws: why it is not asked.
    package mutating func ask(_ question: PeerQuestion) throws(SendRefusal) -> UInt32 {
        try checkRoom()
        guard asked.count < Int(peerLimits.streamsMax) else { throw .streamsUsedUp }
        guard questionsLeft > 0 else { throw .wornOut }
        let stream = UInt32(nextStream)
        control.append(try question.frame(stream: stream))
        nextStream += 2
        asked[stream] = AskedStream(windowBytes: hello.limits.windowBytes)
        return stream
    }

    /// Wants no answer on `stream` any more: no event will name it.
    ///
    /// Nothing if it has ended.
    package mutating func cancel(_ stream: UInt32) {
        guard isOpen, let question = asked[stream], !question.isCancelled else { return }
        asked[stream]?.isCancelled = true
        enqueue(StreamReset.frame(.cancelled, stream: stream))
    }

    /// So many bytes that were delivered on `stream` are out of the way: others may come.
    ///
    /// Nothing if it has ended.
    package mutating func taken(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = asked.index(forKey: stream) else { return }
        let grant = asked.values[place].taken(bytesCount)
        guard grant > 0 else { return }
        urgent.append(StreamCredit.frame(grant, stream: stream))
        if queuedBytes > Self.queueBytesEnd { fail(.notReading) }
    }
}

// MARK: Answering

extension PeerLink {
    /// Answers the question on `stream`; after a final answer the stream is closed.
    ///
    /// FETCHING, and interim answers, are left out while much waits.
    ///
    /// - Throws: ``SendRefusal/tooLong(_:)`` for a head that does not fit,
    ///   ``SendRefusal/queueFull`` for a head (a refusal of the question is always taken),
    ///   ``SendRefusal/streamClosed``, ``SendRefusal/outOfPlace`` after HELD.
    package mutating func answer(
        _ answer: PeerAnswer, on stream: UInt32
    ) throws(SendRefusal) {
        guard isOpen else { throw .notOpen }
        guard let place = answering.index(forKey: stream) else { throw .streamClosed }
        guard answering.values[place].state == .owed else { throw .outOfPlace }
        switch answer {
        case .fetching where queuedBytes > Self.queueBytesBusy: return
        case .interim where queuedBytes > Self.queueBytesBusy: return
        case .held, .notModified:
            guard queuedBytes < Self.queueBytesMax else { throw .queueFull }
        default: break
        }
        let frame = try answer.frame(stream: stream)
        if case .held(let entry) = answer { answering.values[place].held(entry) }
        if answer.isFinal { answering.remove(at: place) }
        enqueue(frame)
    }

    /// The shell has `bytesCount` bytes more of the body that was announced on `stream`.
    ///
    /// More than was announced breaks it off. Nothing if it has ended.
    package mutating func bodyBecameReady(_ bytesCount: Int, on stream: UInt32) {
        guard isOpen, let place = answering.index(forKey: stream) else { return }
        guard answering.values[place].becameReady(bytesCount) else {
            breakOff(stream, .broken)
            return
        }
        lineUp(stream)
    }

    /// The shell has no more of the body on `stream`, behind which `trailers` are said.
    ///
    /// END goes behind the last of it; RESET, if it is shorter than announced. Nothing if the
    /// stream has ended.
    package mutating func bodyBecameWhole(on stream: UInt32, trailers: [UInt8] = []) {
        guard isOpen, let place = answering.index(forKey: stream) else { return }
        answering.values[place].becameWhole(trailers: trailers)
        finish(stream)
    }

    /// Gives up the body, or the answer, on `stream`: what was ready and not sent is not sent.
    ///
    /// Nothing if it has ended.
    package mutating func breakOff(_ stream: UInt32, _ code: StreamReset.Code) {
        guard isOpen, answering.removeValue(forKey: stream) != nil else { return }
        enqueue(StreamReset.frame(code, stream: stream))
    }

    /// Puts the stream at the end of the line if it has something to send and is not in it.
    mutating func lineUp(_ stream: UInt32) {
        guard let place = answering.index(forKey: stream),
            answering.values[place].hasTurn, !answering.values[place].isInLine
        else { return }
        answering.values[place].isInLine = true
        line.append(stream)
    }

    private mutating func finish(_ stream: UInt32) {
        switch answering[stream]?.ending {
        case .whole(let end):
            answering[stream] = nil
            enqueue(end.frame(stream: stream))
        case .broken: breakOff(stream, .broken)
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
    package mutating func next() -> PeerSending {
        if state == .ended { return .close }
        if let frame = urgent.takeFirst() ?? control.takeFirst() { return .control(frame) }
        switch state {
        case .greeting: return .nothing
        case .open: return nextData()
        case .leaving, .ended:
            state = .ended
            return .close
        }
    }

    private mutating func nextData() -> PeerSending {
        let bytesMax = min(PeerProtocol.dataBytesMax, Int(peerLimits.dataBytesMax))
        while let stream = line.takeFirst() {
            guard let place = answering.index(forKey: stream) else { continue }
            answering.values[place].isInLine = false
            let count = answering.values[place].takeTurn(bytesMax: bytesMax)
            lineUp(stream)
            finish(stream)
            return .data(PeerFrameHead(.data, stream: stream, payloadBytes: count))
        }
        return .nothing
    }
}
