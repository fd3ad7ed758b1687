import Cluster
import Ground
import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

/// Input of a connection, frame by frame.
extension PeerConnection {
    /// Processes received plaintext.
    func receive(_ plaintext: ByteBuffer) {
        if input.readableBytes == 0 {
            input = plaintext
        } else {
            var plaintext = plaintext
            input.writeBuffer(&plaintext)
        }
        do throws(PeerFault) {
            while try readFrame() {}
        } catch {
            handleFault(error)
        }
        input.discardReadBytes()
    }

    /// Processes a frame, or a part of a body; returns false if more bytes are needed.
    func readFrame() throws(PeerFault) -> Bool {
        if let (arrival, left) = data, left > 0 {
            let count = min(left, input.readableBytes)
            guard count > 0, let piece = input.readSlice(length: count) else { return false }
            data = (arrival, left - count)
            if case .deliver(let stream, _) = arrival, let ask = requests[stream] {
                if ask.receivedEntry?.body.append(piece) == nil {
                    ask.deliver(.dataReceived(piece))
                }
            }
            return true
        }
        let headBytes = PeerFrameHeader.bytesCount
        guard input.readableBytes >= headBytes else { return false }
        let head: PeerFrameHeader
        let bytes = input
        do throws(PeerFault) {
            head = try PeerFrameHeader(bytes.readableBytesUInt8Span)
        } catch {
            link.headerInvalid(error)
            throw error
        }
        if head.kind == .data {
            input.moveReaderIndex(forwardBy: headBytes)
            data = (try link.dataReceived(head), head.payloadBytes)
            return true
        }
        let start = input.readerIndex + headBytes
        guard let payload = input.getSlice(at: start, length: head.payloadBytes) else {
            return false
        }
        input.moveReaderIndex(to: start + head.payloadBytes)
        let event = try link.frameReceived(
            head, payload: payload.readableBytesUInt8Span, now: SystemClock.now())
        handle(event)
        return phase == .opening || phase == .open
    }

    /// Handles a violation of the protocol, or a connection to this very process.
    func handleFault(_ fault: PeerFault) {
        if fault == .selfConnection {
            phase = .closing
            hub.selfConnectionDetected(id, dialled: dialled)
        } else {
            reportFailure(fault.description)
        }
        flush()
    }

    /// Handles an event of the link.
    func handle(_ event: PeerEvent) {
        switch event {
        case .helloReceived(let hello, _):
            deadline?.cancel()
            phase = .open
            peerID.withLock { $0 = hello.member.id }
            hub.connectionOpened(self, hello)
        case .gossipReceived(let gossip): hub.gossipReceived(gossip, on: id)
        case .goodbyeReceived(let goodbye):
            self.goodbye = goodbye
            if phase == .opening { fail("the peer closed the connection: \(goodbye.text)") }
            close()
        case .queryReceived(let stream, let question): queryReceived(question, on: stream)
        case .queryCancelled(let stream): handlers.removeValue(forKey: stream)?.cancelled()
        case .replyReceived(let stream, let response):
            guard let ask = requests[stream] else { return }
            if case .held(let entry) = response { return entryReceived(entry, by: ask) }
            guard response.isFinal else { return ask.deliver(.replyReceived(response)) }
            complete(ask, .replyReceived(response))
        case .bodyEnded(let stream, let whole):
            guard let ask = requests[stream] else { return }
            let isArriving = ask.receivedEntry != nil
            ask.receivedEntry?.end = whole
            complete(ask, isArriving ? nil : .bodyEnded(whole))
        case .streamReset(let stream, _), .connectionLost(let stream, _):
            if let ask = requests[stream] { complete(ask, .failed) }
        case .invalidationReceived(let message):
            if let peer { hub.host.purges?.enqueue(.messageReceived(message, from: peer)) }
        case .touchesReceived(let touches): hub.host.service?.touchesReceived(touches)
        case .offersReceived(let offers): hub.offersReceived(offers, on: self)
        case .offerOutcomesReceived(let verdicts): hub.offerOutcomesReceived(verdicts, on: self)
        case .ignored: break
        }
    }

    /// Starts the handler of a query, after the invalidations that came with it.
    func queryReceived(_ question: PeerQuery, on stream: UInt32) {
        guard let handler = hub.host.service?.makeQueryHandler(question, on: stream, of: self),
            let purges = hub.host.purges
        else { return link.reset(stream, .overloaded) }
        handlers[stream] = handler
        guard let peer else { return handler.start() }
        purges.queryReceived(question, from: peer)
        if purges.isBehind(peer) {
            handler.startWhenCaughtUp(with: peer)
        } else {
            handler.start()
        }
    }

    /// Holds an entry until the end of this turn of the loop: a body that has arrived by then is
    /// delivered with its head and its end, and costs the fetch one step.
    private func entryReceived(_ entry: PeerEntry, by ask: PeerRequest) {
        ask.hasEntryHead = true
        ask.receivedEntry = ReceivedEntry(entry: entry)
        receivingRequests.append(ask)
    }

    /// Delivers the entries that began in this turn of the loop and have not ended.
    func deliverReceivedEntries() {
        for ask in receivingRequests { ask.deliverReceivedEntry() }
        receivingRequests.removeAll(keepingCapacity: true)
    }

    /// Delivers the last event of a query, after the events held back.
    func complete(_ ask: PeerRequest, _ event: PeerRequest.Event?) {
        if let stream = ask.stream { requests[stream] = nil }
        ask.stream = nil
        ask.deliverReceivedEntry()
        if let event { ask.deliver(event) }
    }
}
