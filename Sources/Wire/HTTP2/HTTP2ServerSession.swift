import CNgHTTP2
import Ground

/// The receiver of a server session's events; must outlive the session.
///
/// All calls come from inside ``HTTP2Session/receive(_:now:)`` and
/// ``HTTP2Session/takeOutput(into:bytesMax:now:)``.
package protocol HTTP2ServerDelegate: AnyObject {
    /// A request head has arrived, converted to the equivalent HTTP/1.1 head.
    ///
    /// It has `linesCount` field lines and the final empty line, and is valid during the call.
    /// `hasBody` is true if the head does not end the request. A body without Content-Length is
    /// declared as chunked, even one that an empty DATA frame ends right after the head; its bytes
    /// arrive without chunk framing.
    func requestReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool)
    /// A request head exceeds a limit and was dropped; the stream may be responded to, or reset.
    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestParseError, hasBody: Bool)
    /// A piece of the body has arrived, valid during the call.
    ///
    /// Call ``HTTP2ServerSession/consume(_:bytes:)`` once the bytes are passed on.
    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>)
    /// The body is complete; `trailers` are field lines, each with its CR LF, usually none.
    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>)
    /// All bytes written to the stream are framed, and it is not ended: more may be written.
    func streamDrained(_ stream: HTTP2Stream)
    /// The last call for a stream: both halves have ended (`noError`), or one side reset it.
    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode)
}

/// The server's end of an HTTP/2 connection; confined to its event loop.
package final class HTTP2ServerSession: HTTP2Session {
    private unowned let delegate: any HTTP2ServerDelegate
    @exclusivity(unchecked) private var requestWriter = HTTP1RequestHeadWriter()
    @exclusivity(unchecked) private var section = IncomingFieldSection()
    @exclusivity(unchecked) private var closedStreams = ClosedStreams()
    @exclusivity(unchecked) private var pendingPriorities = PendingPriorities()
    /// The stream of the header block that the previous frame left open.
    @exclusivity(unchecked) private var previousOpenBlock: Int32?
    /// The progress of the graceful shutdown.
    private var shutdown = Shutdown.none

    private enum Shutdown {
        case none
        /// GOAWAY with the highest id was sent, followed by a PING.
        case announced
        /// GOAWAY with the last id that is processed was sent.
        case final
    }

    /// The payload of the PING that follows the first GOAWAY.
    private static let shutdownPing: [UInt8] = Array("shutdown".utf8)

    /// Starts the connection; the client's first bytes are the preface.
    package init(settings: HTTP2Settings, delegate: any HTTP2ServerDelegate) {
        self.delegate = delegate
        super.init(settings: settings, isServer: true)
        var entries = [
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.concurrentStreamsMax),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.headBytesMax),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        if settings.decoderTableBytesMax != 4096 {
            entries.append((NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.decoderTableBytesMax))
        }
        submitSettings(entries)
    }

    // MARK: - Responses

    /// Sends the head of the final response, given as an HTTP/1.1 response head.
    ///
    /// Connection-specific fields of HTTP/1.1 are omitted, and names are sent in lower case. Does
    /// nothing if the stream is closed or reset, or already has a final head.
    package func sendResponse(_ stream: HTTP2Stream, head: Span<UInt8>, endsStream: Bool) {
        guard !stream.isClosed, !stream.isReset, !stream.isHeadSubmitted else { return }
        stream.isHeadSubmitted = true
        if endsStream { stream.isEnding = true }
        encodeFields(head)
        var body = unsafe dataProvider(stream)
        _ = unsafe head.withUnsafeBufferPointer { _ in
            unsafe withUnsafePointer(to: &body) { body in
                unsafe nghttp2_submit_response(
                    nghttp2Session, stream.id, fields.fields, fields.count, endsStream ? nil : body)
            }
        }
    }

    /// Sends an interim response (1xx other than 101); does nothing after the final head, or if the
    /// stream is closed or reset.
    package func sendInterimResponse(_ stream: HTTP2Stream, head: Span<UInt8>) {
        guard !stream.isClosed, !stream.isReset, !stream.isHeadSubmitted else { return }
        encodeFields(head)
        _ = unsafe head.withUnsafeBufferPointer { _ in
            unsafe nghttp2_submit_headers(
                nghttp2Session, 0, stream.id, nil, fields.fields, fields.count, nil)
        }
    }

    /// Returns `bytes` of the request's body, at most those not returned yet, to the flow-control
    /// windows of its stream and of the connection; does nothing if the stream is closed.
    package func consume(_ stream: HTTP2Stream, bytes: Int) {
        let count = min(bytes, stream.bytesUnconsumed)
        guard !stream.isClosed, count > 0 else { return }
        stream.bytesUnconsumed -= count
        unsafe nghttp2_session_consume(nghttp2Session, stream.id, count)
    }

    /// Collects the status and the fields of `head`, which must not move until they are submitted.
    private func encodeFields(_ head: Span<UInt8>) {
        unsafe fields.removeAll()
        var lineEnd = 12
        precondition(head.count >= 15, "no status line")
        while !head.holdsLineEnd(at: lineEnd, end: head.count), lineEnd < head.count {
            lineEnd += 1
        }
        unsafe head.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            // The status follows `HTTP/1.1 `.
            unsafe fields.append(":status", unsafe base + 9, 3)
        }
        unsafe fields.appendLines(head, from: lineEnd + 2)
    }

    // MARK: - Shutdown

    /// Asks the client to open no more streams; open ones are still served (RFC 9113 §6.8).
    ///
    /// Streams that the client opens before it knows are served too. Once the client has
    /// acknowledged, or at a second call, further ones are refused.
    package func shutDownGracefully() {
        switch shutdown {
        case .none:
            shutdown = .announced
            unsafe nghttp2_submit_shutdown_notice(nghttp2Session)
        case .announced:
            shutdown = .final
            unsafe nghttp2_submit_goaway(
                nghttp2Session, 0, nghttp2_session_get_last_proc_stream_id(nghttp2Session), 0, nil,
                0)
        case .final: break
        }
    }

    // MARK: - Requests

    override func headerBlockStarted(_ id: Int32, category: nghttp2_headers_category) {
        if category != NGHTTP2_HCAT_REQUEST {
            guard let stream = stream(id) else { return }
            return unsafe section.begin(stream, isTrailers: true)
        }
        let stream = makeStream()
        stream.id = id
        unsafe nghttp2_session_set_stream_user_data(
            nghttp2Session, id, Unmanaged.passUnretained(stream).toOpaque())
        unsafe section.begin(stream, isTrailers: false)
        unsafe requestWriter.begin()
        // Takes precedence over the request's own Priority field (RFC 9218 §7).
        if let priority = unsafe pendingPriorities.take(id) { apply(priority, to: id) }
    }

    override func fieldReceived(
        _ id: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch unsafe section.recordLine(name, value, settings) {
        case .limitExceeded: break
        case .hardLimitExceeded: return false
        case .withinLimits where unsafe section.isTrailers:
            unsafe section.appendTrailer(name, value)
        case .withinLimits: unsafe requestWriter.append(name, value)
        }
        return true
    }

    override func headerBlockEnded(
        _ id: Int32, category: nghttp2_headers_category, endsStream: Bool
    ) {
        guard let stream = unsafe section.end() else { return }
        if unsafe section.isTrailers {
            guard stream.isHeadDelivered else { return }
            guard stream.headError == nil else { return reset(stream, .enhanceYourCalm) }
            return endBody(stream)
        }
        unsafe requestWriter.finish(hasBody: !endsStream)
        if unsafe requestWriter.isMalformed, stream.headError == nil {
            reset(stream, .protocolError)
            return chargePeerError()
        }
        stream.isHeadDelivered = true
        stream.isRemoteEnded = endsStream
        if let refusal = stream.headError {
            stream.headError = nil
            delegate.requestRefused(stream, refusal, hasBody: !endsStream)
        } else {
            let text = unsafe requestWriter.text.bytes
            unsafe delegate.requestReceived(
                stream, head: Span(_unsafeElements: text), linesCount: requestWriter.linesCount,
                hasBody: !endsStream)
        }
    }

    override func dataReceived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let stream = stream(id) else {
            unsafe nghttp2_session_consume(nghttp2Session, id, bytes.count)
            return
        }
        stream.bytesUnconsumed += bytes.count
        delegate.bodyReceived(stream, unsafe Span(_unsafeElements: bytes))
    }

    override func streamEnded(_ id: Int32) {
        guard let stream = stream(id), stream.isHeadDelivered else { return }
        endBody(stream)
    }

    /// Notifies the delegate that the request's body is complete, with its trailers.
    private func endBody(_ stream: HTTP2Stream) {
        stream.isRemoteEnded = true
        let text = unsafe section.trailers(of: stream)
        delegate.bodyEnded(stream, trailers: unsafe Span(_unsafeElements: text))
    }

    // MARK: - Frames

    override func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        guard shutdown == .announced, UInt32(head.type) == NGHTTP2_PING.rawValue,
            head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        else { return }
        shutDownGracefully()
    }

    /// Checks frames for streams that nghttp2 has forgotten, and PRIORITY, which it ignores.
    override func validateFrame(_ head: FrameHeader) -> HTTP2ErrorCode? {
        let openBlock = unsafe previousOpenBlock
        unsafe previousOpenBlock = unsafe frameScanner.openHeaderBlock
        if let code = super.validateFrame(head) { return code }
        guard openBlock == nil else { return nil }
        switch head.type {
        case FrameHeader.priority:
            // A stream may not depend on itself (RFC 7540 §5.3.1).
            return head.streamID == 0 || head.relatedStream == head.streamID ? .protocolError : nil
        case FrameHeader.priorityUpdate: return priorityUpdateReceived(head)
        case FrameHeader.headers:
            guard head.streamID & 1 == 1 else { return nil }
            if unsafe head.streamID > closedStreams.last {
                unsafe closedStreams.streamOpened(head.streamID)
                return nil
            }
        case FrameHeader.data: break
        default: return nil
        }
        guard head.streamID & 1 == 1, unsafe head.streamID <= closedStreams.last,
            unsafe nghttp2_session_find_stream(nghttp2Session, head.streamID) == nil
        else { return nil }
        switch unsafe closedStreams.state(head.streamID) {
        case .ignored: return nil
        case .ended: return .streamClosed
        case .skipped: return head.type == FrameHeader.data ? .streamClosed : .protocolError
        }
    }

    /// Applies PRIORITY_UPDATE (RFC 9218 §7.1) in place of nghttp2, or keeps it for a stream that
    /// is not open yet; returns the error that ends the connection, or `nil`.
    ///
    /// nghttp2 1.52 frees what it keeps for a stream that is not open yet while that is in use.
    private func priorityUpdateReceived(_ head: FrameHeader) -> HTTP2ErrorCode? {
        guard head.streamID == 0 else { return .protocolError }
        guard let id = head.relatedStream else { return .frameSizeError }
        // Nothing is pushed, so no stream with an even id has a priority.
        guard id & 1 == 1 else { return .protocolError }
        guard let value = unsafe frameScanner.updateValue, let priority = StreamPriority(value)
        else { return nil }
        if unsafe id > closedStreams.last {
            unsafe pendingPriorities.set(id, priority)
        } else {
            apply(priority, to: id)
        }
        return nil
    }

    /// Sets the priority of a stream, which overrides that of its request; does nothing if the
    /// stream is not open.
    private func apply(_ priority: StreamPriority, to id: Int32) {
        var value = nghttp2_extpri(
            urgency: priority.urgency, inc: priority.isIncremental ? 1 : 0)
        unsafe nghttp2_session_change_extpri_stream_priority(nghttp2Session, id, &value, 1)
    }

    override func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        unsafe super.frameSent(frame)
        let head = unsafe frame.pointee.hd
        if UInt32(head.type) == NGHTTP2_GOAWAY.rawValue, shutdown == .announced {
            // Not submitted with GOAWAY, because PING would overtake it.
            unsafe Self.shutdownPing.span.withUnsafeBufferPointer {
                _ = unsafe nghttp2_submit_ping(nghttp2Session, 0, $0.baseAddress)
            }
            return
        }
        guard head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0,
            UInt32(head.type) <= NGHTTP2_HEADERS.rawValue, let stream = stream(head.stream_id),
            !stream.isRemoteEnded
        else { return }
        // The response is complete; the rest of the request is not needed (RFC 9113 §8.1).
        reset(stream, .noError)
    }

    override func streamDrained(_ stream: HTTP2Stream) {
        delegate.streamDrained(stream)
    }

    override func streamClosed(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        unsafe section.streamClosed(stream)
        if !stream.isReset {
            unsafe closedStreams.streamEnded(stream.id)
            if code == .noError { unsafe flood.credit(FloodGuard.streamGain) }
        }
        guard stream.isHeadDelivered else { return }
        delegate.streamClosed(stream, code: code)
    }
}
