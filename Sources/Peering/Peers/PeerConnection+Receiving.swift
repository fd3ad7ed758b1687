package import Cluster
import Ground
package import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

/// Input of a connection, frame by frame.
extension PeerConnection {
    /// Processes received plaintext, until the connection begins to close.
    func receive(_ plaintext: ByteBuffer) {
        input.append(plaintext)
        do throws(PeerFault) {
            while phase == .opening || phase == .open, let part = try input.next(&link) {
                switch part {
                case .event(let event): handle(event)
                case .body(let piece, let stream): requests.bodyReceived(piece, on: stream)
                }
            }
        } catch {
            handleFault(error)
        }
        input.discardReadBytes()
    }

    /// Reports a violation of the protocol, or a connection to this very process, to the hub, and
    /// sends what the link has queued to close the connection.
    func handleFault(_ fault: PeerFault) {
        if fault == .selfConnection {
            phase = .closing
            hub.selfConnectionDetected(id, dialled: dialled)
        } else {
            reportFailure(fault.description, PeerRejections.Reason(fault))
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
            if phase == .opening {
                fail(
                    "the peer closed the connection: \(goodbye.text)",
                    goodbye.code == .version ? .noCommonVersion(nil) : nil)
            }
            close()
        case .queryReceived(let stream, let question): queryReceived(question, on: stream)
        case .queryCancelled(let stream): handlers.removeValue(forKey: stream)?.cancelled()
        case .replyReceived(let stream, let reply): requests.replyReceived(reply, on: stream)
        case .bodyEnded(let stream, let end): requests.bodyEnded(end, on: stream)
        case .streamReset(let stream, _), .connectionLost(let stream, _):
            requests.streamFailed(stream)
        case .invalidationReceived(let message):
            if let peer { hub.host.purges?.enqueue(.messageReceived(message, from: peer)) }
        case .touchesReceived(let touches): hub.host.service?.touchesReceived(touches)
        case .offersReceived(let offers): hub.offersReceived(offers, on: self)
        case .summaryReceived(let summary): hub.summaryReceived(summary, on: id)
        case .offerOutcomesReceived(let verdicts): hub.offerOutcomesReceived(verdicts, on: self)
        case .ignored: break
        }
    }

    /// Applies the invalidations that came with a query, and starts its handler, if need be once
    /// this node has caught up; resets the stream as overloaded if the node has stopped.
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
}

/// The plaintext of a connection that is not processed yet, which is divided into frames.
package struct PeerInput {
    /// A part of the input.
    package enum Part {
        /// The event of a complete frame.
        case event(PeerEvent)
        /// The next bytes of a body on a stream.
        case body(ByteBuffer, stream: UInt32)
    }

    private var buffer = ByteBuffer()
    /// The DATA frame whose payload is arriving, and the bytes to come.
    private var data: (disposition: DataDisposition, left: Int)?

    /// Creates the input of a new connection.
    package init() {}

    /// Appends received plaintext.
    package mutating func append(_ plaintext: ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = plaintext
        } else {
            var plaintext = plaintext
            buffer.writeBuffer(&plaintext)
        }
    }

    /// Releases the memory of processed bytes.
    package mutating func discardReadBytes() {
        buffer.discardReadBytes()
    }

    /// Passes frames and headers to `link` up to the next part that concerns others.
    ///
    /// - Returns: the part; `nil` if more bytes are needed.
    /// - Throws: a violation of the protocol, for which the link closes the connection.
    package mutating func next(_ link: inout PeerLink) throws(PeerFault) -> Part? {
        while true {
            if let (disposition, left) = data, left > 0 {
                let count = min(left, buffer.readableBytes)
                guard count > 0, let piece = buffer.readSlice(length: count) else { return nil }
                data = (disposition, left - count)
                guard case .deliver(let stream, _) = disposition else { continue }
                return .body(piece, stream: stream)
            }
            let headBytes = PeerFrameHeader.bytesCount
            guard buffer.readableBytes >= headBytes else { return nil }
            let head: PeerFrameHeader
            do throws(PeerFault) {
                head = try PeerFrameHeader(buffer.readableBytesUInt8Span)
            } catch {
                link.headerInvalid(error)
                throw error
            }
            if head.kind == .data {
                buffer.moveReaderIndex(forwardBy: headBytes)
                data = (try link.dataReceived(head), head.payloadBytes)
                continue
            }
            let start = buffer.readerIndex + headBytes
            guard let payload = buffer.getSlice(at: start, length: head.payloadBytes) else {
                return nil
            }
            buffer.moveReaderIndex(to: start + head.payloadBytes)
            return .event(
                try link.frameReceived(
                    head, payload: payload.readableBytesUInt8Span, now: SystemClock.now()))
        }
    }
}
