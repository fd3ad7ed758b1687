import Ground
import NIOCore
import Store
import Telemetry

/// What goes out to the client, and how the connection ends.
extension HTTP1Connection: Outlet {
    @inline(__always)
    func send(head: ByteBuffer) {
        write(head)
    }

    func send(interim: ByteBuffer) {
        write(interim)
    }

    @inline(__always)
    func send(body: ByteBuffer) {
        write(body)
    }

    var socketRoom: Int { context.map(writer.room) ?? 0 }

    func sendPast(_ send: (CInt) -> Int) -> Int {
        guard let context else { return 0 }
        let taken = writer.sendPast(context, send)
        if side == .data { hall.counters.add(.sentBytes, taken) }
        return taken
    }

    func beginChunk(bytes: UInt64) {
        write(ByteBuffer(string: String(bytes, radix: 16) + "\r\n"))
    }

    func endChunk() {
        write(ByteBuffer(string: "\r\n"))
    }

    func endChunks(trailers: [UInt8]) {
        var end = ByteBuffer(string: "0\r\n")
        end.writeBytes(trailers)
        end.writeString("\r\n")
        write(end)
    }

    @inline(__always)
    func answerEnded() {
        if door.closesAfterAnswer { return beginEnding() }
        phase = .idle
    }

    func lend(_ resident: Resident) {
        lent.append(resident)
    }

    func goOn() {
        guard phase == .idle else { return }
        deadline = SystemClock.now() + settings.idleTimeout
        consumeInput()
        resumeReading()
    }

    /// Hands everything written to the socket.
    func flush() {
        guard hasUnflushed, let context else { return }
        hasUnflushed = false
        if writer.flush(context) { socketTookEverything() }
        if queuedBytes > 0, !congestion.isOn {
            congestion.begin(bufferedBytes, SystemClock.now(), settings)
        }
    }

    func close() {
        guard phase != .closed, let context else { return }
        flush()
        phase = .closed
        door.dropWaiting()
        context.close(promise: nil)
    }

    func breakOff() {
        guard phase != .closed, let context else { return }
        phase = .closed
        door.dropWaiting()
        door.client?.isBrokenOff = true
        context.channel.reset()
    }

    /// After the last answer: hands it to the socket, says that nothing more will come, and drops
    /// what still arrives until the client has closed.
    private func beginEnding() {
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
            guard isResting else { return }
            if hasInputEnded { close() } else { beginEnding() }
        }
    }

    private func outputTaken() {
        if door.isAnswering {
            door.proceed()
            // What came while the client took nothing.
            if door.takesUpload { consumeInput() }
        } else {
            switch phase {
            case .idle, .head, .body: consumeInput()
            case .ending: return queuedBytes == 0 ? beginLingering() : ()
            case .lingering, .closed: return
            }
        }
        flush()
        if queuedBytes < NodeSettings.queuedBytesMax { resumeReading() }
    }

    // MARK: Congestion

    func socketTookEverything() {
        lent.removeAll(keepingCapacity: true)
        forgetQueued()
        if congestion.isOn { endCongestion() }
        if door.isDraining || hasInputEnded, isResting { return endSoon() }
        guard door.isAnswering || phase == .ending || holdsRead || input.readableBytes > 0
        else { return }
        // Not here: the flush that led to this call is still under way.
        hall.loop.assumeIsolated().execute { [self] in outputTaken() }
    }

    private func endCongestion() {
        congestion.end()
        guard !door.isAnswering else { return }
        switch phase {
        case .idle: deadline = SystemClock.now() + settings.idleTimeout
        case .head where holdsRead: deadline = SystemClock.now() + settings.headTimeout
        case .body where holdsRead: deadline = SystemClock.now() + settings.bodyTimeout
        default: break
        }
    }

    /// Bytes that the socket has not taken.
    var bufferedBytes: Int { context?.channel.queuedBytes ?? queuedBytes }
}
