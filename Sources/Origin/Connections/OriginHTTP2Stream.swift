import Ground
import HTTPRules
import NIOCore
import Wire

/// One request and its response on an HTTP/2 connection.
///
/// Invariants: `pendingEvents` is empty unless the transaction is paused or a delivery is in
/// progress. `completion` is reported after all pending events. Nothing is written to `stream` once
/// it is closed.
final class OriginHTTP2Stream: OriginTransport {
    /// How the response ended.
    private enum Completion {
        case complete
        /// The origin has not processed the request.
        case refused
        case closed(InputCloseReason)
        case failed(OriginFailure)
    }

    private let handler: OriginHTTP2Handler
    private var transaction: OriginTransaction?
    private var stream: HTTP2Stream?
    private var requestIsHead = false
    private var keepsTrailers = false
    private var framing = BodyFraming.none
    private var bodyBytes: UInt64 = 0
    private var pendingEvents: CircularBuffer<ResponseEvent> = []
    private var completion: Completion?
    private var isAdvancing = false
    /// When the request was sent.
    private var sentAt = Instant.zero

    /// Maximum number of request body bytes that may wait for the origin's flow-control windows.
    private static let queuedBytesMax = 64 << 10

    init(on link: OriginHTTP2Handler, for hop: OriginTransaction) {
        self.handler = link
        self.transaction = hop
    }

    // MARK: The request

    /// Starts the request; if the connection has no capacity for it after all, that is soon
    /// reported as a refusal.
    func send(_ request: OriginFetchRequest, _ body: OutgoingBodyPart) {
        requestIsHead = request.isHead
        keepsTrailers = request.origin.isOperatorConfigured
        sentAt = transaction?.now ?? .zero
        stream = handler.startStream(request, self)
        guard stream != nil else {
            // Not at once: the caller has not finished sending.
            completion = .refused
            transaction?.schedule { [self] in deliverPending() }
            return
        }
        write(body)
    }

    func write(_ body: OutgoingBodyPart) {
        guard let stream, !stream.isClosed else { return }
        handler.write(stream, body)
    }

    /// True while the stream is open and few bytes wait for the flow-control windows.
    var isWritable: Bool {
        guard let stream, !stream.isClosed else { return false }
        return stream.bytesQueued < Self.queuedBytesMax
    }

    var isFlushed: Bool { stream.map { $0.bytesQueued == 0 } ?? true }

    /// Reports that no written byte is pending.
    func drained() {
        transaction?.requestWritten()
        transaction?.connectionBecameWritable()
    }

    func responseTimedOut() {
        handler.responseTimedOut(since: sentAt)
    }

    /// Detaches the transaction, drops pending events, and resets an unfinished stream if
    /// `closing`; only the first call has an effect.
    func release(closing: Bool) {
        guard transaction != nil else { return }
        transaction = nil
        pendingEvents.removeAll()
        if let stream, !stream.isClosed, closing { handler.reset(stream) }
        handler.streamReleased()
    }

    // MARK: The response

    /// Processes a complete head; an interim one if `linesCount` is `nil`.
    func headReceived(
        _ head: Span<UInt8>, _ parser: inout ResponseParser, linesCount: Int?, hasBody: Bool
    ) {
        guard let transaction, completion == nil else { return }
        transaction.bytesReceived(head.count)
        parser.reset()
        switch parser.parse(head, from: 0, requestIsHead: requestIsHead) {
        case .interim(let interim, let end) where linesCount == nil && end == head.count:
            pendingEvents.append(.interim(interim))
        case .head(var found, let end)
        where found.head.lines.count == linesCount && end == head.count:
            // The stream delimits the body; Wire has already translated this into the terms of
            // HTTP/1.1.
            if !hasBody, found.framing == .chunked || found.framing == .untilClose {
                found.framing = .none
            }
            framing = found.framing
            pendingEvents.append(.head(found))
        case .refused(.headTooLarge(let bytesMax)): return fail(.headTooLarge(bytesMax: bytesMax))
        case .refused(let refusal): return fail(.malformed(refusal.message))
        case .incomplete, .interim, .head: return fail(.http2(.protocolError, byOrigin: false))
        }
        deliverPending()
    }

    /// Appends a piece of the body; the response fails if it exceeds its Content-Length.
    func bodyReceived(_ piece: ByteBuffer) {
        guard let transaction, completion == nil else { return }
        let count = piece.readableBytes
        transaction.bytesReceived(count)
        bodyBytes += UInt64(count)
        if framing == .none { return fail(.contentLengthExceeded) }
        if case .length(let length) = framing, bodyBytes > length {
            return fail(.contentLengthExceeded)
        }
        pendingEvents.append(.body(piece))
        deliverPending()
    }

    /// Records the end of the response, with its trailers if they are wanted; a body below its
    /// Content-Length counts as truncated.
    func responseEnded(trailers section: [UInt8]) {
        guard transaction != nil, completion == nil else { return }
        if case .length(let length) = framing, bodyBytes < length {
            completion = .closed(.orderly)
            return deliverPending()
        }
        if keepsTrailers, !section.isEmpty {
            guard let trailers = Trailers(section) else {
                return fail(.malformed("a trailer field is one for framing or routing"))
            }
            pendingEvents.append(.trailers(trailers))
        }
        completion = .complete
        deliverPending()
    }

    /// Records that the stream is closed: by `code`, or because the connection's input ended as
    /// `input`.
    func closed(_ code: HTTP2ErrorCode, isRefused: Bool, with input: InputCloseReason?) {
        let stream = stream.take()
        guard transaction != nil, completion == nil, let stream else { return }
        if isRefused {
            completion = .refused
        } else if let input {
            completion = .closed(input)
        } else if stream.headError != nil {
            completion = .failed(.headTooLarge(bytesMax: handler.headBytesMax))
        } else {
            let error = code == .noError ? HTTP2ErrorCode.protocolError : code
            completion = .closed(.http2(error, byOrigin: !stream.isReset && code != .noError))
        }
        deliverPending()
    }

    /// Ends the response with a failure, which is reported after the pending events.
    private func fail(_ failure: OriginFailure) {
        completion = .failed(failure)
        deliverPending()
    }

    /// Delivers pending events while the transaction accepts them, then the completion.
    func deliverPending() {
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let transaction, !transaction.isPaused, let step = pendingEvents.popFirst() {
            transaction.responseEventReceived(step, isReusable: true)
            if case .body(let piece) = step, let stream {
                handler.consume(stream, bytes: piece.readableBytes)
            }
        }
        if let transaction, !transaction.isPaused, pendingEvents.isEmpty, let completion {
            switch completion {
            case .complete: transaction.responseEventReceived(.end, isReusable: true)
            case .refused: transaction.streamRefused()
            case .closed(let end): transaction.inputClosed(end)
            case .failed(let failure):
                transaction.responseEventReceived(.refused(failure), isReusable: false)
            }
        }
        handler.flush()
    }
}
