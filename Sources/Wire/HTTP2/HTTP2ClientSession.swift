import CNgHTTP2
import Ground
import HTTPRules

/// The client's end of a connection, to an origin.
package final class HTTP2ClientSession: HTTP2Session {
    private unowned let delegate: any HTTP2ClientDelegate
    private var responseWriter = HTTP1ResponseHeadWriter()
    private var section = IncomingFieldSection()
    /// True once the origin's first SETTINGS came, which say how many requests it allows at once.
    package private(set) var hasSettings = false

    /// Begins the connection: the preface and SETTINGS are in the output.
    package init(settings: HTTP2Settings, delegate: any HTTP2ClientDelegate) {
        self.delegate = delegate
        super.init(settings: settings, isServer: false)
        submitSettings([
            (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.headBytesMax),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ])
    }

    // MARK: - Requests

    /// How many requests may be made now; 0 for good once the origin has said GOAWAY.
    ///
    /// One before the origin's SETTINGS came: how many it allows is not known yet, and it would
    /// refuse those beyond (RFC 9113 §5.1.2).
    package var requestsAvailable: Int {
        guard failure == nil, unsafe nghttp2_session_check_request_allowed(nghttp2Session) != 0
        else {
            return 0
        }
        guard hasSettings else { return max(0, 1 - openStreamCount) }
        let allowed = unsafe nghttp2_session_get_remote_settings(
            nghttp2Session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return max(0, min(Int(allowed), settings.concurrentStreamsMax) - openStreamCount)
    }

    /// Sends a request: the text of an HTTP/1.1 request head with a target in origin-form or `*`,
    /// and Host, without which it is refused.
    ///
    /// Fields of HTTP/1.1 connections are left out, and names are sent in lower case. Nil if
    /// ``requestsAvailable`` is 0.
    package func sendRequest(
        head: Span<UInt8>, isSecure: Bool, endsStream: Bool
    ) -> HTTP2Stream? {
        guard requestsAvailable > 0, encodeFields(head, isSecure: isSecure) else { return nil }
        let stream = makeStream()
        stream.isHeadSubmitted = true
        stream.isEnding = endsStream
        var body = unsafe dataProvider(stream)
        let pointer = unsafe Unmanaged.passUnretained(stream).toOpaque()
        stream.id = unsafe head.withUnsafeBufferPointer { _ in
            unsafe withUnsafePointer(to: &body) { body in
                unsafe nghttp2_submit_request(
                    nghttp2Session, nil, fields.fields, fields.count, endsStream ? nil : body,
                    pointer)
            }
        }
        guard stream.id > 0 else {
            removeStream(at: stream.index)
            return nil
        }
        return stream
    }

    /// Gives `bytes` of the answer's body back to the window of its stream; the connection's was
    /// given back when they came.
    package func consume(_ stream: HTTP2Stream, bytes: Int) {
        let count = min(bytes, stream.bytesUnconsumed)
        guard !stream.isClosed, count > 0 else { return }
        stream.bytesUnconsumed -= count
        unsafe nghttp2_session_consume_stream(nghttp2Session, stream.id, count)
    }

    /// Asks the origin for a sign of life, which ``HTTP2ClientDelegate/pongArrived()`` tells.
    package func sendPing() {
        unsafe nghttp2_submit_ping(nghttp2Session, 0, nil)
    }

    /// Reads `METHOD target HTTP/1.1` and the fields of `head`, which must stay where it is until
    /// they are submitted; false without a Host.
    private func encodeFields(_ head: Span<UInt8>, isSecure: Bool) -> Bool {
        guard let methodEnd = index(of: Byte.space, in: head, from: 0),
            let targetEnd = index(of: Byte.space, in: head, from: methodEnd + 1),
            let lineEnd = index(of: Byte.lineFeed, in: head, from: targetEnd + 1),
            let host = host(of: head, from: lineEnd + 1)
        else { return false }
        unsafe fields.removeAll()
        unsafe head.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            unsafe fields.append(":method", base, methodEnd)
            let scheme: StaticString = isSecure ? "https" : "http"
            unsafe fields.append(":scheme", scheme.utf8Start, scheme.utf8CodeUnitCount)
            unsafe fields.append(":authority", base + host.lowerBound, host.count)
            unsafe fields.append(":path", base + methodEnd + 1, targetEnd - methodEnd - 1)
        }
        unsafe fields.appendLines(head, from: lineEnd + 1, isRequest: true)
        return true
    }

    private func index(of byte: UInt8, in text: Span<UInt8>, from start: Int) -> Int? {
        var index = start
        while index < text.count {
            if text[index] == byte { return index }
            index += 1
        }
        return nil
    }

    private func host(of head: Span<UInt8>, from start: Int) -> Range<Int>? {
        var position = start
        while case .line(let line, let next) = FieldLineParser.parseLine(
            head, at: position, end: head.count)
        {
            if line.id == .host { return line.value }
            position = next
        }
        return nil
    }

    // MARK: - Answers

    override func headerBlockStarted(_ id: Int32, category: nghttp2_headers_category) {
        guard let stream = stream(id) else { return }
        section.begin(stream, isTrailers: stream.isHeadDelivered)
        if !section.isTrailers { responseWriter.begin() }
    }

    override func fieldReceived(
        _ id: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch unsafe section.recordLine(name, value, settings) {
        case .limitExceeded: break
        case .hardLimitExceeded: return false
        case .withinLimits where section.isTrailers: unsafe section.appendTrailer(name, value)
        case .withinLimits: unsafe responseWriter.append(name, value)
        }
        return true
    }

    override func headerBlockEnded(
        _ id: Int32, category: nghttp2_headers_category, endsStream: Bool
    ) {
        guard let stream = section.end() else { return }
        guard stream.headError == nil else { return reset(stream, .enhanceYourCalm) }
        if section.isTrailers { return endResponse(stream) }
        responseWriter.finish(hasBody: !endsStream && responseWriter.status >= 200)
        let text = unsafe responseWriter.text.bytes
        if responseWriter.status < 200 {
            unsafe delegate.interimResponseReceived(
                stream, status: responseWriter.status, head: Span(_unsafeElements: text))
            return
        }
        stream.isHeadDelivered = true
        unsafe delegate.responseReceived(
            stream, head: Span(_unsafeElements: text), linesCount: responseWriter.linesCount,
            hasBody: !endsStream)
        if endsStream { endResponse(stream) }
    }

    override func dataReceived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe nghttp2_session_consume_connection(nghttp2Session, bytes.count)
        guard let stream = stream(id) else { return }
        stream.bytesUnconsumed += bytes.count
        unsafe delegate.bodyReceived(stream, Span(_unsafeElements: bytes))
    }

    override func streamEnded(_ id: Int32) {
        guard let stream = stream(id), stream.isHeadDelivered else { return }
        endResponse(stream)
    }

    private func endResponse(_ stream: HTTP2Stream) {
        guard !stream.isRemoteEnded else { return }
        stream.isRemoteEnded = true
        let text = unsafe section.trailers(of: stream)
        unsafe delegate.responseEnded(stream, trailers: Span(_unsafeElements: text))
    }

    // MARK: - The connection

    /// No server sends PRIORITY_UPDATE (RFC 9218 §7.1), which nghttp2 does not look at.
    override func validateFrame(_ head: FrameHeader) -> HTTP2ErrorCode? {
        if let code = super.validateFrame(head) { return code }
        return unsafe head.type == FrameHeader.priorityUpdate && frameScanner.openHeaderBlock == nil
            ? .protocolError : nil
    }

    override func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        let isAck = head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch UInt32(head.type) {
        case NGHTTP2_SETTINGS.rawValue where !isAck:
            hasSettings = true
            delegate.settingsReceived()
        case NGHTTP2_PING.rawValue where isAck: delegate.pingAcknowledged()
        case NGHTTP2_GOAWAY.rawValue:
            unsafe delegate.goAwayReceived(
                code: HTTP2ErrorCode(rawValue: frame.pointee.goaway.error_code))
        default: break
        }
    }

    override func streamDrained(_ stream: HTTP2Stream) {
        delegate.streamDrained(stream)
    }

    override func streamClosed(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        section.streamClosed(stream)
        if code == .noError { unsafe flood.credit(FloodGuard.streamGain) }
        delegate.streamClosed(
            stream, code: code, isSafeToRetry: code == .refusedStream && !stream.isHeadDelivered)
    }
}

/// Who made the requests of a connection to an origin; must outlive the session.
package protocol HTTP2ClientDelegate: AnyObject {
    /// An interim answer, 1xx, came before the answer; its head as in ``answerArrived``.
    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>)
    /// The head of the answer came, written as the HTTP/1.1 head that says the same, with the empty
    /// line that ends it and `linesCount` field lines; valid during the call.
    ///
    /// A body that has no Content-Length is said to be chunked; its bytes come undecorated. Without
    /// `hasBody` there is none, whatever the fields say.
    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool)
    /// Bytes of a body, valid during the call; say with ``HTTP2ClientSession/consumed(_:bytes:)``
    /// when they have been passed on.
    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>)
    /// The answer is complete; `trailers` are field lines, each with its CR LF, and mostly none.
    ///
    /// Called after ``answerArrived`` without a body too.
    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>)
    /// All that was written to the stream is framed, and it has not been ended: write more.
    func streamDrained(_ stream: HTTP2Stream)
    /// The last call for a stream: both halves are ended (`noError`), or it failed.
    ///
    /// If it is safe to retry, the origin has not acted on the request (RFC 9113 §8.7). A head
    /// above a limit fails the stream with `enhanceYourCalm`.
    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool)
    /// The origin takes no more requests on this connection; those above its last id fail, and are
    /// safe to retry.
    func goAwayReceived(code: HTTP2ErrorCode)
    /// The origin's SETTINGS came, the first time or again: see
    /// ``HTTP2ClientSession/requestsAvailable``.
    func settingsReceived()
    /// The answer to ``HTTP2ClientSession/ping()``.
    func pingAcknowledged()
}
