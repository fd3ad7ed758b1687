import Glibc
import Ground
import NIOCore
import Telemetry

/// What goes out to the client, and how the connection ends.
extension Door {
    /// Hands everything written to the socket.
    func flush() {
        guard hasUnflushed, let context else { return }
        hasUnflushed = false
        context.flush()
        // One byte alone does not pass the mark, which cannot be lower.
        if queuedBytes == 1 { socketTookEverything() }
        if queuedBytes > 0, congestedBytes == nil {
            congestedBytes = bufferedBytes
            sendDeadline = SystemClock.now() + settings.sendTimeout
        }
    }

    @inline(__always)
    func write(_ buffer: ByteBuffer) {
        guard let context else { return }
        queuedBytes += buffer.readableBytes
        if side == .data { hall.counters.add(.sentBytes, buffer.readableBytes) }
        hasUnflushed = true
        context.write(wrapOutboundOut(buffer), promise: nil)
    }

    func close() {
        guard phase != .closed, let context else { return }
        flush()
        phase = .closed
        dropWaiting()
        context.close(promise: nil)
    }

    /// Ends the connection with a reset, so that no client can take what it has for a whole answer.
    func breakOff() {
        guard phase != .closed, let context else { return }
        phase = .closed
        dropWaiting()
        if let socket = context.channel as? any SocketOptionProvider {
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        context.close(promise: nil)
    }

    /// After the last answer: hands it to the socket, says that nothing more will come, and drops
    /// what still arrives until the client has closed.
    func beginEnding() {
        flush()
        input.clear()
        phase = .ending
        if queuedBytes == 0 { beginLingering() }
        resumeReading()
    }

    private func beginLingering() {
        guard let context else { return }
        phase = .lingering
        deadline = SystemClock.now() + settings.lingerTimeout
        context.close(mode: .output, promise: nil)
        if hasInputEnded { close() }
    }

    func drop(_ bytes: Int) {
        lingeredBytes += bytes
        if lingeredBytes > settings.lingerBytesMax { close() }
    }

    /// No further request is looked at.
    var isLast: Bool { phase == .ending || phase == .lingering || phase == .closed }

    func resumeReading() {
        guard holdsRead, let context else { return }
        holdsRead = false
        context.read()
    }

    /// The last answer is with the socket; not at once, because its flush may be under way.
    private func endSoon() {
        hall.loop.assumeIsolated().execute { [self] in
            guard phase == .idle, queuedBytes == 0, input.readableBytes == 0 else { return }
            if hasInputEnded { close() } else { beginEnding() }
        }
    }

    private func outputTaken() {
        switch phase {
        case .answering: proceed()
        case .idle, .head, .body: consumeInput()
        case .ending: return queuedBytes == 0 ? beginLingering() : ()
        case .lingering, .closed: return
        }
        flush()
        if queuedBytes < NodeSettings.queuedBytesMax { resumeReading() }
    }

    func dropWaiting() {
        abandonUpload()
        guard let waiting else { return }
        self.waiting = nil
        dropRun(waiting)
    }

    // MARK: Congestion

    func socketTookEverything() {
        lent.removeAll(keepingCapacity: true)
        queuedBytes = 0
        if congestedBytes != nil { endCongestion() }
        if isDraining || hasInputEnded, phase == .idle, input.readableBytes == 0 {
            return endSoon()
        }
        guard phase == .answering || phase == .ending || holdsRead || input.readableBytes > 0
        else { return }
        // Not here: the flush that led to this call is still under way.
        hall.loop.assumeIsolated().execute { [self] in outputTaken() }
    }

    private func endCongestion() {
        congestedBytes = nil
        switch phase {
        case .idle: deadline = SystemClock.now() + settings.idleTimeout
        case .head where holdsRead: deadline = SystemClock.now() + settings.headTimeout
        case .body where holdsRead: deadline = SystemClock.now() + settings.bodyTimeout
        default: break
        }
    }

    /// False if the client has taken nothing for as long as it may.
    func takesSomething(_ now: Instant) -> Bool {
        let waiting = bufferedBytes
        if waiting != congestedBytes {
            congestedBytes = waiting
            sendDeadline = now + settings.sendTimeout
        }
        return now < sendDeadline
    }

    /// Bytes that the socket has not taken.
    private var bufferedBytes: Int {
        let options = context?.channel.syncOptions
        return (try? options?.getOption(.bufferedWritableBytes)) ?? queuedBytes
    }
}
