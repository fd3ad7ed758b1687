import Cluster
import Ground
import NIOCore
import Synchronization
import Telemetry
import Wire

/// What comes, frame by frame.
extension PeerConnection {
    /// Takes in plaintext, frame by frame.
    func take(_ plaintext: ByteBuffer) {
        if input.readableBytes == 0 {
            input = plaintext
        } else {
            var plaintext = plaintext
            input.writeBuffer(&plaintext)
        }
        do throws(PeerFault) {
            while try takeFrame() {}
        } catch {
            fault(error)
        }
        input.discardReadBytes()
    }

    /// Takes one frame, or a part of a body; false if more has to come first.
    func takeFrame() throws(PeerFault) -> Bool {
        if let (arrival, left) = data, left > 0 {
            let count = min(left, input.readableBytes)
            guard count > 0, let piece = input.readSlice(length: count) else { return false }
            data = (arrival, left - count)
            if case .deliver(let stream, _) = arrival, let ask = asks[stream] {
                if ask.arriving?.body.append(piece) == nil { ask.tell(.data(piece)) }
            }
            return true
        }
        let headBytes = PeerFrameHead.bytesCount
        guard input.readableBytes >= headBytes else { return false }
        let head: PeerFrameHead
        let bytes = input
        do throws(PeerFault) {
            head = try PeerFrameHead(bytes.readableBytesUInt8Span)
        } catch {
            link.headFailed(error)
            throw error
        }
        if head.kind == .data {
            input.moveReaderIndex(forwardBy: headBytes)
            data = (try link.dataArrived(head), head.payloadBytes)
            return true
        }
        let start = input.readerIndex + headBytes
        guard let payload = input.getSlice(at: start, length: head.payloadBytes) else {
            return false
        }
        input.moveReaderIndex(to: start + head.payloadBytes)
        let event = try link.frameArrived(
            head, payload: payload.readableBytesUInt8Span, now: SystemClock.now())
        handle(event)
        return phase == .opening || phase == .open
    }

    func fault(_ fault: PeerFault) {
        if fault == .ownProcess {
            phase = .ending
            hub.metItself(id, dialled: dialled)
        } else {
            report(fault.description)
        }
        flush()
    }

    func handle(_ event: PeerEvent) {
        switch event {
        case .met(let hello, _):
            deadline?.cancel()
            phase = .open
            told.withLock { $0 = hello.member.id }
            hub.opened(self, hello)
        case .gossiped(let gossip): hub.heard(gossip, on: id)
        case .left(let goodbye):
            self.goodbye = goodbye
            if phase == .opening { fail("it says: \(goodbye.text)") }
            close()
        case .asked(let stream, let question): asked(question, on: stream)
        case .cancelled(let stream): answerings.removeValue(forKey: stream)?.cancelled()
        case .answered(let stream, let answer):
            guard let ask = asks[stream] else { return }
            if case .held(let entry) = answer { return held(entry, by: ask) }
            guard answer.isFinal else { return ask.tell(.answered(answer)) }
            end(ask, .answered(answer))
        case .ended(let stream, let whole):
            guard let ask = asks[stream] else { return }
            let isArriving = ask.arriving != nil
            ask.arriving?.end = whole
            end(ask, isArriving ? nil : .ended(whole))
        case .broken(let stream, _), .lost(let stream, _):
            if let ask = asks[stream] { end(ask, .lost) }
        case .heard(let message):
            if let peer { hall?.desk.handleSoon(.message(message, from: peer)) }
        case .touched(let touches): hall?.node.collect(fromPeer: touches)
        case .offered(let offers): hub.offered(offers, on: self)
        case .offersAnswered(let verdicts): hub.answered(verdicts, on: self)
        case .nothing: break
        }
    }

    var hall: Hall? { context.flatMap { hub.hall(of: $0.eventLoop) } }

    func asked(_ question: PeerQuestion, on stream: UInt32) {
        guard let hall else {
            return link.breakOff(stream, .overloaded)
        }
        let answering = PeerAnswering(question, on: stream, of: self, in: hall)
        answerings[stream] = answering
        guard let peer else { return answering.begin() }
        hall.desk.took(question, from: peer)
        if hall.desk.isBehind(peer) {
            answering.beginLate(behind: peer)
        } else {
            answering.begin()
        }
    }

    /// Waits for what else of the answer comes in this turn: a body that comes in one piece is
    /// told of with its head and its end, and costs the fetch one step.
    private func held(_ entry: HeldEntry, by ask: PeerAsk) {
        ask.hasHead = true
        ask.arriving = GivenAnswer(entry: entry)
        arriving.append(ask)
    }

    /// Tells of the answers that have begun in this turn and have not ended.
    func tellArrived() {
        for ask in arriving { ask.tellArrived() }
        arriving.removeAll(keepingCapacity: true)
    }

    /// The last that is told of a question, behind what came before.
    func end(_ ask: PeerAsk, _ event: PeerAsk.Event?) {
        if let stream = ask.stream { asks[stream] = nil }
        ask.stream = nil
        ask.tellArrived()
        if let event { ask.tell(event) }
    }
}
