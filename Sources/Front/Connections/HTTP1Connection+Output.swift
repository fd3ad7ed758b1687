import Ground
import NIOCore
import Platform
import Store
import Telemetry

/// Output to the client, and the end of the connection.
extension HTTP1Connection: ResponseWriter {
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

    var socketWritableBytes: Int { context.map(output.writer.writableBytes) ?? 0 }

    func sendDirectly(_ send: (CInt) -> Int) -> Int {
        guard let context else { return 0 }
        let taken = output.writer.sendDirectly(context, send)
        if plane == .data { loopContext.counters.add(.sentBytes, taken) }
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

    /// Makes the connection idle, or ends it after the last response.
    @inline(__always)
    func responseEnded() {
        if response.closesAfterResponse { return beginEnding() }
        phase = .idle
    }

    func retain(_ entry: MemoryEntry) {
        output.retain(entry)
    }

    /// Processes the input that has waited, unless a request is being read, and resumes reading.
    func resumeRequests() {
        guard phase == .idle else { return }
        deadline = SystemClock.now() + settings.idleTimeout
        consumeInput()
        resumeReading()
    }

    /// Writes everything buffered to the socket.
    func flush() {
        guard output.hasUnflushed, let context else { return }
        output.hasUnflushed = false
        if output.writer.flush(context) { socketDrained() }
        output.watchStall(context, loopContext.settings.sendTimeout)
    }

    func close() {
        guard phase != .closed, let context else { return }
        flush()
        phase = .closed
        handler.cancelPendingResponse()
        context.close(promise: nil)
    }

    /// Closes the connection with a reset, and leaves the fetch of the response in progress.
    func abort() {
        guard phase != .closed, let context else { return }
        phase = .closed
        handler.cancelPendingResponse()
        response.client?.isAborted = true
        context.channel.reset()
    }

    /// Ends the connection after the last response: flushes, shuts down the sending side, and
    /// discards further input until the client has closed.
    private func beginEnding() {
        flush()
        input.clear()
        phase = .ending
        if queuedBytes == 0 { beginLingering() }
        resumeReading()
    }

    /// Shuts down the sending side after the last response reached the socket; closes at once if
    /// the client has closed its own.
    private func beginLingering() {
        guard let context else { return }
        phase = .lingering
        deadline = SystemClock.now() + settings.lingerTimeout
        context.close(mode: .output, promise: nil)
        if hasInputEnded { close() }
    }

    /// Counts discarded input bytes, and closes once they exceed `lingerBytesMax`.
    func discard(_ bytes: Int) {
        discardedBytes += bytes
        if discardedBytes > settings.lingerBytesMax { close() }
    }

    /// Requests the read that was held back, if there is one.
    func resumeReading() {
        guard isReadPending, let context else { return }
        isReadPending = false
        context.read()
    }

    /// Schedules the end after the last response reached the socket; not at once, because its flush
    /// may still be on the call stack.
    private func scheduleEnd() {
        loopContext.loop.assumeIsolated().execute { [self] in
            guard isQuiescent else { return }
            if hasInputEnded { close() } else { beginEnding() }
        }
    }

    /// Continues the response or the input after the socket has accepted everything.
    private func outputDrained() {
        if response.isResponding {
            handler.proceed()
            // Input that arrived while the client read nothing.
            if handler.acceptsUpload { consumeInput() }
        } else if phase.acceptsRequests {
            consumeInput()
        } else {
            return phase == .ending && queuedBytes == 0 ? beginLingering() : ()
        }
        flush()
        if queuedBytes < NodeSettings.queuedBytesMax { resumeReading() }
    }

    // MARK: Congestion

    /// Releases the entries after the socket has accepted everything, and schedules what continues
    /// then.
    func socketDrained() {
        output.drained()
        if output.stall.isActive { endWriteStall() }
        if response.isDraining || hasInputEnded, isQuiescent { return scheduleEnd() }
        guard response.isResponding || phase == .ending || isReadPending || input.readableBytes > 0
        else { return }
        // Deferred: the flush that led to this call is still on the call stack.
        loopContext.loop.assumeIsolated().execute { [self] in outputDrained() }
    }

    /// Ends the detection of a stalled client, whose next time limit starts now.
    private func endWriteStall() {
        output.stall.end()
        guard !response.isResponding, phase.acceptsRequests, phase == .idle || isReadPending,
            let limit = phase.timeLimit(settings)
        else { return }
        deadline = SystemClock.now() + limit
    }
}
