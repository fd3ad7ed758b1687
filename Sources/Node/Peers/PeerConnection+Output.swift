import Cluster
import Ground
import NIOCore
import Telemetry
import Wire

/// What goes.
extension PeerConnection {
    /// Flushes when all that is ready in this turn of the loop has been looked at: what many
    /// clients ask goes out as one.
    func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    /// Frames what may be sent now, encrypts it, and hands it to the socket.
    func flush() {
        guard let context, phase != .closed, !isFlushing, !isReading, session.isEstablished else {
            return
        }
        isFlushing = true
        defer { isFlushing = false }
        var isLast = false
        while context.channel.isWritable || link.state == .closing {
            var (count, framesCount) = (0, 0)
            framing: while count < Self.bufferedBytesMax {
                switch link.nextOutput() {
                case .control(let frame):
                    pendingPlaintext.append(frame)
                    count += frame.count
                case .data(let head):
                    pendingPlaintext.append(head.bytes)
                    // Nobody has announced it: the frame cannot be made.
                    guard let answering = handlers[head.stream] else { return close() }
                    answering.writeBody(head.payloadBytes, into: &pieces)
                    for piece in pieces { pendingPlaintext.append(piece) }
                    pieces.removeAll(keepingCapacity: true)
                    count += PeerFrameHeader.bytesCount + head.payloadBytes
                case .idle: break framing
                case .close:
                    isLast = true
                    break framing
                }
                framesCount += 1
            }
            guard count > 0 else { break }
            hub.counters.add(.peerFramesSent, framesCount)
            hub.counters.add(.peerSentBytes, count)
            pendingPlaintext.write(to: session, now: SystemClock.now())
            sendOutput()
        }
        if isLast { closeOutput() }
    }

    /// All is said: waits a little for the peer to close, so that it has the time to read it.
    func closeOutput() {
        guard phase != .closed, let context else { return }
        if phase == .open || phase == .opening { phase = .closing }
        session.close()
        sendOutput()
        context.close(mode: .output, promise: nil)
        deadline?.cancel()
        let time = TimeAmount.nanoseconds(Self.closeTimeout.nanoseconds)
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
            self.context?.close(promise: nil)
        }
    }

    func sendOutput() {
        guard let context, let output = session.takeOutput() else { return }
        writer.append(output)
        // What the socket does not take waits in the channel, which tells when that is too much.
        _ = writer.flush(context)
    }
}
