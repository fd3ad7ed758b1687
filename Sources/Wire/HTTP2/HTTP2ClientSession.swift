import CNgHTTP2
import Ground
import HTTPRules

/// The client's end of an HTTP/2 connection to an origin; confined to its event loop.
package final class HTTP2ClientSession: HTTP2Session {
    private unowned let delegate: any HTTP2ClientDelegate
    private var responseWriter = HTTP1ResponseHeadWriter()
    private var section = IncomingFieldSection()
    /// True once the origin's first SETTINGS have arrived, which limit the concurrent requests.
    package private(set) var hasSettings = false

    /// Starts the connection: the preface and SETTINGS are queued for output.
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

    /// The number of requests that may be sent now; 0 for good once the origin has sent GOAWAY or
    /// this end has closed the connection.
    ///
    /// At most one before the origin's SETTINGS arrive: its limit is not known, and it would refuse
    /// requests beyond it (RFC 9113 §5.1.2).
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

    /// Sends a request.
    ///
    /// Connection-specific fields of HTTP/1.1 are omitted, and names are sent in lower case.
    ///
    /// - Parameters:
    ///   - head: an HTTP/1.1 request head with a target in origin form or `*`, and with Host.
    ///   - isSecure: true if `:scheme` is https.
    ///   - endsStream: true if there is no body.
    /// - Returns: the stream; `nil` if nothing was sent, because ``requestsAvailable`` is 0, Host
    ///   is missing, or no stream ids are left.
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

    /// Returns `bytes` of the response's body, at most those not returned yet, to the flow-control
    /// window of its stream; does nothing if the stream is closed.
    ///
    /// The window of the connection is replenished on arrival.
    package func consume(_ stream: HTTP2Stream, bytes: Int) {
        let count = min(bytes, stream.bytesUnconsumed)
        guard !stream.isClosed, count > 0 else { return }
        stream.bytesUnconsumed -= count
        unsafe nghttp2_session_consume_stream(nghttp2Session, stream.id, count)
    }

    /// Collects the request line and the fields of `head`; returns false without Host.
    ///
    /// The fields point into `head`, which must not move until they are submitted.
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

    /// Returns the value of the first Host line of the field lines from `start`; `nil` without one.
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

    // MARK: - Responses

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

    /// Notifies the delegate, once, that the response is complete, with its trailers.
    private func endResponse(_ stream: HTTP2Stream) {
        guard !stream.isRemoteEnded else { return }
        stream.isRemoteEnded = true
        let text = unsafe section.trailers(of: stream)
        unsafe delegate.responseEnded(stream, trailers: Span(_unsafeElements: text))
    }

    // MARK: - The connection

    /// Rejects PRIORITY_UPDATE, which no server sends (RFC 9218 §7.1) and nghttp2 does not check.
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

/// The receiver of a client session's events; must outlive the session.
///
/// All calls come from inside ``HTTP2Session/receive(_:now:)`` and
/// ``HTTP2Session/takeOutput(into:bytesMax:now:)``.
package protocol HTTP2ClientDelegate: AnyObject {
    /// An interim response (1xx) has arrived; its head is as for
    /// ``responseReceived(_:head:linesCount:hasBody:)``.
    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>)
    /// A response head has arrived, converted to the equivalent HTTP/1.1 head.
    ///
    /// It has `linesCount` field lines and the final empty line, and is valid during the call. A
    /// body without Content-Length is declared as chunked; its bytes arrive without chunk framing.
    /// Without `hasBody` there is no body, whatever the fields are.
    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool)
    /// A piece of the body has arrived, valid during the call.
    ///
    /// Call ``HTTP2ClientSession/consume(_:bytes:)`` once the bytes are passed on.
    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>)
    /// The response is complete; `trailers` are field lines, each with its CR LF, usually none.
    ///
    /// Called for responses without a body too.
    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>)
    /// All bytes written to the stream are framed, and it is not ended: more may be written.
    func streamDrained(_ stream: HTTP2Stream)
    /// The last call for a stream: both halves have ended (`noError`), or it failed.
    ///
    /// If `isSafeToRetry`, the origin has not processed the request (RFC 9113 §8.7). A head beyond
    /// a limit fails the stream with `enhanceYourCalm`.
    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool)
    /// The origin accepts no more requests on this connection; streams above its last id fail, and
    /// are safe to retry.
    func goAwayReceived(code: HTTP2ErrorCode)
    /// The origin's SETTINGS have arrived, initially or later: see
    /// ``HTTP2ClientSession/requestsAvailable``.
    func settingsReceived()
}
