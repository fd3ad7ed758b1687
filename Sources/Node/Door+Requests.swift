import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

extension Door {
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

    /// Reads requests from `bytes` and answers them; gives how many bytes were used up.
    ///
    /// Stops before the next request when an answer has to wait, the output is congested or the
    /// connection ends.
    func consume(_ bytes: Span<UInt8>) -> Int {
        let now = SystemClock.now()
        var position = 0
        if awaitsProxyHeader {
            guard let end = readProxyHeader(bytes, now: now) else { return bytes.count }
            guard !awaitsProxyHeader else { return 0 }
            position = end
        }
        while position < bytes.count, queuedBytes < NodeSettings.queuedBytesMax {
            switch phase {
            case .idle, .head:
                if hasOldLimits { adoptLimits() }
                switch parser.parse(bytes, from: position) {
                case .incomplete:
                    if phase == .idle { deadline = now + settings.headTimeout }
                    phase = .head
                    return position
                case .refused(let refusal):
                    isHeadRequest = false
                    hall.counters.add(.requestsMalformed)
                    refuse(.malformed(refusal))
                    return bytes.count
                case .head(let end):
                    headRange = position..<end
                    position = end
                    phase = .idle
                    deadline = now + settings.idleTimeout
                    if parser.framing == .none || parser.framing == .length(0) || isOfSite(bytes) {
                        answer(bytes, now: now)
                    } else {
                        beginBody(bytes, now: now)
                    }
                }
            case .body:
                guard let next = dropBody(bytes, from: position, now: now) else {
                    return bytes.count
                }
                position = next
            case .answering where upload?.fetch?.isFull == false:
                position = uploadBody(bytes, from: position, now: now)
                guard upload != nil || phase == .idle else { return position }
            case .answering, .ending, .lingering, .closed:
                return position
            }
        }
        return position
    }

    // MARK: Bodies of requests

    /// Nothing here takes a body; it is read and dropped, so that the next request is found behind
    /// it.
    private func beginBody(_ bytes: Span<UInt8>, now: Instant) {
        if case .length(let length) = parser.framing, length > settings.requestBodyBytesMax {
            isHeadRequest = parser.method == .head
            return refuse(.bodyTooLarge(bytesMax: settings.requestBodyBytesMax))
        }
        pending = PendingRequest(copying: parser, bytes, headRange)
        bodyDecoder = BodyDecoder(parser.framing)
        bodyBytes = 0
        phase = .body
        deadline = now + settings.bodyTimeout
        guard parser.expectsContinue else { return }
        write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"))
    }

    /// Gives the offset behind the bytes that were used, or nil if the connection ends.
    private func dropBody(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Int? {
        var position = start
        while true {
            switch bodyDecoder.next(bytes, from: position) {
            case .data(let extent, let next):
                bodyBytes += UInt64(extent.count)
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
                guard let request = pending else { preconditionFailure("a body of no request") }
                pending = nil
                answerAgain(request, now: now)
                return next
            case .refused(let refusal):
                hall.counters.add(.requestsMalformed)
                refuse(.malformedBody(refusal))
                return nil
            }
        }
    }

    /// Answers a request whose head was copied, because a body stood between it and its answer.
    private func answerAgain(_ request: PendingRequest, now: Instant) {
        guard case .head = parser.parse(request.head.span, from: 0) else {
            preconditionFailure("a head that was read once cannot be read again")
        }
        headRange = 0..<request.head.count
        let head = request.head
        // Of a site the body would have gone to its origin; it became one while the body came.
        if isOfSite(head.span) { return breakOff() }
        answer(head.span, now: now)
    }
}
