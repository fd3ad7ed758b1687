import Ground
import HTTPRules
import NIOCore
import Platform
import Telemetry
import Wire

extension HTTP1Connection {
    /// Processes `input` until a response must wait or no complete element is left.
    func consumeInput() {
        defer { if hasInputEnded { endInput() } }
        guard input.readableBytes > 0 else { return }
        // Moved out, because processing may put new bytes into `input`.
        var taken = input
        input = ByteBuffer()
        let used = consume(taken.readableBytesUInt8Span)
        guard phase.acceptsRequests else { return }
        taken.moveReaderIndex(forwardBy: used)
        if taken.readableBytes == 0 { taken.clear() } else { taken.discardReadBytes() }
        input = taken
    }

    /// Reads requests from `bytes` and starts their responses; returns the number of bytes
    /// consumed.
    ///
    /// Stops before the next request if a response must wait, the output is congested or the
    /// connection ends.
    func consume(_ bytes: Span<UInt8>) -> Int {
        let now = SystemClock.now()
        var position = 0
        while position < bytes.count, queuedBytes < NodeSettings.queuedBytesMax {
            if response.isResponding {
                guard handler.acceptsUpload else { return position }
                position = forwardBody(bytes, from: position, now: now)
                guard handler.upload != nil || !response.isResponding else { return position }
                continue
            }
            switch phase {
            case .idle, .head:
                guard let next = readHead(bytes, from: position, now: now) else {
                    return phase == .head ? position : bytes.count
                }
                position = next
            case .body:
                guard let next = discardBody(bytes, from: position, now: now) else {
                    return bytes.count
                }
                position = next
            case .ending, .lingering, .closed: return position
            }
        }
        return position
    }

    /// Reads a request head, then starts the response or begins to read the body; returns the
    /// offset after the head, or `nil` if the head is incomplete or was refused.
    @inline(__always)
    private func readHead(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int? {
        if hasOutdatedLimits, phase == .idle {
            handler.reconfigureLimits()
            hasOutdatedLimits = false
        }
        switch handler.parser.parse(bytes, from: start) {
        case .incomplete:
            if phase == .idle { deadline = now + settings.headTimeout }
            phase = .head
            return nil
        case .refused(let refusal):
            if isFirstRequest, HTTP2Connection.replace(self, bytes, from: start) { return nil }
            phase = .idle
            if plane == .data { loopContext.counters.add(.requestsMalformed) }
            refuse(.malformed(refusal))
            return nil
        case .head(let end):
            isFirstRequest = false
            handler.read(bytes, start..<end)
            phase = .idle
            deadline = now + settings.idleTimeout
            let framing = handler.parser.framing
            if framing == .none || framing == .length(0) || handler.isSiteRequest(bytes) {
                handler.respond(bytes, now: now)
            } else {
                beginBody(bytes, now: now)
            }
            return end
        }
    }

    /// Refuses a request that is malformed or late, and ends the connection.
    func refuse(_ problem: Problem) {
        let request = bufferedRequest.take()
        // The method of an unreadable request is unknown, and not that of the request before it.
        if request == nil { response.isHeadRequest = false }
        handler.reject(problem, of: request)
    }

    // MARK: Request bodies

    /// Begins to read the body of a request that is not forwarded, or refuses it if it is too
    /// large.
    ///
    /// The body is buffered for the handler or dropped, and the next request follows it.
    private func beginBody(_ bytes: Span<UInt8>, now: Instant) {
        let request = BufferedRequest(copying: handler.parser, bytes, handler.headRange)
        bufferedRequest = request
        if let problem = request.bodyProblem(bytesMax: settings.requestBodyBytesMax) {
            return refuse(problem)
        }
        bodyDecoder = BodyDecoder(handler.parser.framing)
        phase = .body
        deadline = now + settings.bodyTimeout
        guard handler.parser.expectsContinue else { return }
        send(interim: RequestHandler.continueResponse)
    }

    /// Reads the body of a buffered request, and starts the response at its end; returns the offset
    /// after the bytes consumed, or `nil` if the connection ends.
    private func discardBody(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int? {
        var position = start
        while true {
            switch bodyDecoder.next(bytes, from: position) {
            case .data(let extent, let next):
                bufferedRequest?.appendBody(bytes.extracting(extent.range), plane: plane)
                position = next
                let bytesMax = settings.requestBodyBytesMax
                if let problem = bufferedRequest?.bodyProblem(bytesMax: bytesMax) {
                    refuse(problem)
                    return nil
                }
            case .needsMore:
                return bytes.count
            case .end(let next):
                phase = .idle
                deadline = now + settings.idleTimeout
                guard let request = bufferedRequest.take() else { return next }
                handler.respond(request, now: now)
                return next
            case .refused(let refusal):
                if plane == .data { loopContext.counters.add(.requestsMalformed) }
                refuse(.malformedBody(refusal))
                return nil
            }
        }
    }

    // MARK: Bodies forwarded to an origin

    /// Prepares to decode the body of the request, or raw bytes after a protocol switch.
    func beginRequestBody() {
        let isSwitched = handler.upload?.isTunnel == true
        bodyDecoder = BodyDecoder(
            isSwitched ? .untilClose : handler.parser.framing, keepsTrailers: true)
    }

    /// Forwards the part of the body in `bytes` from `start` on to the handler; returns the offset
    /// after the bytes consumed.
    private func forwardBody(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int {
        var position = start
        while let pending = handler.pendingResponse, pending.upload?.source != nil {
            switch bodyDecoder.next(bytes, from: position) {
            case .data(let extent, let next):
                position = next
                pending.upload?.received(ByteBuffer(bytes: bytes.copy(extent.range)), now: now)
            case .needsMore: return bytes.count
            case .end(let next):
                pending.uploadEnded(bodyDecoder.trailers, now: now)
                return next
            case .refused(let refusal):
                pending.uploadRejected(.malformedBody(refusal))
                return bytes.count
            }
        }
        return position
    }

    /// Forwards the body that has waited, and resumes reading; ends an upload that the client broke
    /// off.
    func resumeRequestBody() {
        consumeInput()
        if hasInputEnded, handler.upload?.source != nil, input.readableBytes == 0 {
            return uploadTruncated()
        }
        resumeReading()
        flush()
    }

    // MARK: The end of the input

    /// Ends a forwarded body whose client has closed its sending side: aborts, except in a tunnel,
    /// where that is the regular end.
    private func uploadTruncated() {
        guard let upload = handler.upload, upload.isTunnel else { return abort() }
        upload.source?.endBody(Trailers())
    }

    /// Handles the end of the client's input; requests received completely still get their
    /// responses.
    func inputClosed() {
        hasInputEnded = true
        if response.isResponding {
            if handler.upload != nil, input.readableBytes == 0 { uploadTruncated() }
            return
        }
        if phase == .lingering { close() } else { endInput() }
    }

    /// Drops an incomplete request after the end of the input, and closes if nothing is queued.
    func endInput() {
        guard !response.isResponding, phase.acceptsRequests,
            input.readableBytes == 0 || phase != .idle
        else { return }
        input.clear()
        bufferedRequest = nil
        phase = .idle
        flush()
        if queuedBytes == 0 { close() }
    }
}
