import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

extension HTTP1Connection {
    /// Looks at what is in `input` until an answer has to wait or nothing whole is left.
    func consumeInput() {
        defer { if hasInputEnded { endInput() } }
        guard input.readableBytes > 0 else { return }
        // Taken out, because answering may put new bytes into `input`.
        var taken = input
        input = ByteBuffer()
        let used = consume(taken.readableBytesUInt8Span)
        guard !isLast else { return }
        taken.moveReaderIndex(forwardBy: used)
        if taken.readableBytes == 0 { taken.clear() } else { taken.discardReadBytes() }
        input = taken
    }

    /// Reads requests from `bytes` and has them answered; gives how many bytes were used up.
    ///
    /// Stops before the next request when an answer has to wait, the output is congested or the
    /// connection ends.
    func consume(_ bytes: Span<UInt8>) -> Int {
        let now = SystemClock.now()
        var position = 0
        while position < bytes.count, queuedBytes < NodeSettings.queuedBytesMax {
            if door.isAnswering {
                guard door.takesUpload else { return position }
                position = upload(bytes, from: position, now: now)
                guard door.upload != nil || !door.isAnswering else { return position }
                continue
            }
            switch phase {
            case .idle, .head:
                guard let next = readHead(bytes, from: position, now: now) else {
                    return phase == .head ? position : bytes.count
                }
                position = next
            case .body:
                guard let next = dropBody(bytes, from: position, now: now) else {
                    return bytes.count
                }
                position = next
            case .ending, .lingering, .closed: return position
            }
        }
        return position
    }

    /// Reads a request's head and has the request answered, or begins to read its body; nil if the
    /// head is not whole, or was none.
    @inline(__always)
    private func readHead(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int? {
        if hasOldLimits, phase == .idle {
            door.adoptLimits()
            hasOldLimits = false
        }
        switch door.parser.parse(bytes, from: start) {
        case .incomplete:
            if phase == .idle { deadline = now + settings.headTimeout }
            phase = .head
            return nil
        case .refused(let refusal):
            if isNew, becomesHTTP2(bytes, from: start) { return nil }
            phase = .idle
            if side == .data { hall.counters.add(.requestsMalformed) }
            refuse(.malformed(refusal))
            return nil
        case .head(let end):
            isNew = false
            door.read(bytes, start..<end)
            phase = .idle
            deadline = now + settings.idleTimeout
            let framing = door.parser.framing
            if framing == .none || framing == .length(0) || door.isOfSite(bytes) {
                door.answer(bytes, now: now)
            } else {
                beginBody(bytes, now: now)
            }
            return end
        }
    }

    /// True if the client speaks HTTP/2 without having asked (RFC 9113 §3.3): what follows is read
    /// by a connection of that kind.
    private func becomesHTTP2(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        let preface = Array("PRI * HTTP/2.0\r\n".utf8)
        guard side == .data, bytes.count - start >= preface.count, let context,
            let client = door.client, !client.isSecure,
            bytes.copy(start..<start + preface.count) == preface
        else { return false }
        let rest = ByteBuffer(bytes: bytes.copy(start..<bytes.count))
        let pipeline = context.pipeline.syncOperations
        let next = HTTP2Connection(on: hall, client: client)
        do { try pipeline.addHandler(next, position: .after(self)) } catch { return false }
        context.fireChannelRead(wrapInboundOut(rest))
        if door.isDraining { next.drain() }
        pipeline.removeHandler(self, promise: nil)
        return true
    }

    /// Refuses what was no request, or not one in time, and ends the connection.
    func refuse(_ problem: Problem) {
        let request = pending.take()
        // What cannot be read is not what came before it.
        if request == nil { door.isHeadRequest = false }
        door.refuse(problem, of: request)
    }

    // MARK: Bodies of requests

    /// Nothing here takes a body; it is read and dropped, so that the next request is found behind
    /// it.
    private func beginBody(_ bytes: Span<UInt8>, now: Instant) {
        let framing = door.parser.framing
        pending = PendingRequest(copying: door.parser, bytes, door.headRange)
        if case .length(let length) = framing, length > settings.requestBodyBytesMax {
            return refuse(.bodyTooLarge(bytesMax: settings.requestBodyBytesMax))
        }
        bodyDecoder = BodyDecoder(framing)
        bodyBytes = 0
        phase = .body
        deadline = now + settings.bodyTimeout
        guard door.parser.expectsContinue else { return }
        send(interim: Door.goOnAndSend)
    }

    /// Gives the offset behind the bytes that were used, or nil if the connection ends.
    private func dropBody(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int? {
        var position = start
        while true {
            switch bodyDecoder.next(bytes, from: position) {
            case .data(let extent, let next):
                bodyBytes += UInt64(extent.count)
                pending?.keep(bytes.extracting(extent.range), on: side)
                position = next
                if bodyBytes > settings.requestBodyBytesMax {
                    refuse(.bodyTooLarge(bytesMax: settings.requestBodyBytesMax))
                    return nil
                }
            case .needsMore:
                return bytes.count
            case .end(let next):
                phase = .idle
                deadline = now + settings.idleTimeout
                guard let request = pending.take() else { return next }
                door.answer(request, now: now)
                return next
            case .refused(let refusal):
                if side == .data { hall.counters.add(.requestsMalformed) }
                refuse(.malformedBody(refusal))
                return nil
            }
        }
    }

    // MARK: Bodies that go to an origin

    func bodyWanted() {
        let isSwitched = door.upload?.isSwitched == true
        bodyDecoder = BodyDecoder(
            isSwitched ? .untilClose : door.parser.framing, keepsTrailers: true)
    }

    /// Gives the door what `bytes` hold of the body from `start` on; the offset behind what was
    /// used.
    private func upload(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int {
        var position = start
        while door.upload?.fetch != nil {
            switch bodyDecoder.next(bytes, from: position) {
            case .data(let extent, let next):
                position = next
                door.uploadArrived(ByteBuffer(bytes: bytes.copy(extent.range)), now: now)
            case .needsMore: return bytes.count
            case .end(let next):
                door.uploadEnded(bodyDecoder.trailers, now: now)
                return next
            case .refused(let refusal):
                door.uploadRefused(.malformedBody(refusal))
                return bytes.count
            }
        }
        return position
    }

    func bodyGoesOn() {
        consumeInput()
        if hasInputEnded, door.upload?.fetch != nil, input.readableBytes == 0 {
            return uploadCut()
        }
        resumeReading()
        flush()
    }

    // MARK: The end of the input

    /// The client sends no more of what goes to the origin: it will never be whole, unless it is of
    /// a protocol in which that is the end.
    private func uploadCut() {
        guard let upload = door.upload, upload.isSwitched else { return breakOff() }
        upload.fetch?.endBody(Trailers())
    }

    /// The client sends nothing more; what it has asked for in full it still gets.
    func inputClosed() {
        hasInputEnded = true
        if door.isAnswering {
            if door.upload != nil, input.readableBytes == 0 { uploadCut() }
            return
        }
        switch phase {
        case .idle, .head, .body: endInput()
        case .lingering: close()
        case .ending, .closed: break
        }
    }

    /// What is left of the input will never be a request.
    func endInput() {
        guard !door.isAnswering, input.readableBytes == 0 || phase != .idle else { return }
        guard phase == .idle || phase == .head || phase == .body else { return }
        input.clear()
        pending = nil
        phase = .idle
        flush()
        if queuedBytes == 0 { close() }
    }
}
