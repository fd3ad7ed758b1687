import CNgHTTP2
import Ground

/// Who answers the requests of a connection; must outlive the session.
package protocol HTTP2ServerDelegate: AnyObject {
    /// A whole head came, written as the HTTP/1.1 head that says the same, with the empty line that
    /// ends it and `linesCount` field lines; valid during the call.
    ///
    /// `hasBody` means that more may follow: the head did not end the request. A body that has no
    /// Content-Length is said to be chunked, even one that an empty DATA frame ends right behind
    /// the head; its bytes come undecorated.
    func requestArrived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool)
    /// A head passed a limit and was not kept; the request may be answered, or reset.
    func requestRefused(_ stream: HTTP2Stream, _ refusal: RequestRefusal, hasBody: Bool)
    /// Bytes of a body, valid during the call; say with ``HTTP2ServerSession/consumed(_:bytes:)``
    /// when they have been passed on.
    func bodyArrived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>)
    /// The body is complete; `trailers` are field lines, each with its CR LF, and mostly none.
    func bodyEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>)
    /// All that was written to the stream is framed, and it has not been ended: write more.
    func drained(_ stream: HTTP2Stream)
    /// The last call for a stream: both halves are ended (`noError`), or it was reset by either
    /// side.
    func closed(_ stream: HTTP2Stream, code: HTTP2ErrorCode)
}

/// The server's end of a connection.
package final class HTTP2ServerSession: HTTP2Session {
    private unowned let delegate: any HTTP2ServerDelegate
    @exclusivity(unchecked) private var request = RequestHeadText()
    @exclusivity(unchecked) private var section = FieldSection()
    @exclusivity(unchecked) private var closedStreams = ClosedStreams()
    @exclusivity(unchecked) private var earlyPriorities = EarlyPriorities()
    /// The stream of the header block that the frame before left open.
    @exclusivity(unchecked) private var blockBefore: Int32?
    /// How far the connection's end has come.
    private var shutdown = Shutdown.none

    private enum Shutdown {
        case none
        /// GOAWAY with the highest id was sent; a PING goes around after it.
        case announced
        /// GOAWAY with the last id that is answered.
        case final
    }

    /// Sent with the PING that follows the first GOAWAY.
    private static let shutdownPing: [UInt8] = Array("shutdown".utf8)

    /// Begins the connection, whose first bytes from the client are the preface.
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

    // MARK: - Answers

    /// Sends the head of the answer: the text of an HTTP/1.1 response head.
    ///
    /// Fields of HTTP/1.1 connections are left out, and names are sent in lower case.
    package func respond(_ stream: HTTP2Stream, head: Span<UInt8>, endsStream: Bool) {
        guard !stream.isClosed, !stream.isReset, !stream.isAnswered else { return }
        stream.isAnswered = true
        if endsStream { stream.isEnding = true }
        collect(head)
        var body = unsafe provider(stream)
        _ = unsafe head.withUnsafeBufferPointer { _ in
            unsafe withUnsafePointer(to: &body) { body in
                unsafe nghttp2_submit_response(
                    library, stream.id, fields.fields, fields.count, endsStream ? nil : body)
            }
        }
    }

    /// Sends an interim answer, 1xx other than 101, before the head of the answer.
    package func interim(_ stream: HTTP2Stream, head: Span<UInt8>) {
        guard !stream.isClosed, !stream.isReset, !stream.isAnswered else { return }
        collect(head)
        _ = unsafe head.withUnsafeBufferPointer { _ in
            unsafe nghttp2_submit_headers(
                library, 0, stream.id, nil, fields.fields, fields.count, nil)
        }
    }

    /// Gives `bytes` of the request's body back to the windows of its stream and the connection.
    package func consumed(_ stream: HTTP2Stream, bytes: Int) {
        let count = min(bytes, stream.bytesUnconsumed)
        guard !stream.isClosed, count > 0 else { return }
        stream.bytesUnconsumed -= count
        unsafe nghttp2_session_consume(library, stream.id, count)
    }

    /// Reads the status and the fields of `head`, which must stay where it is until they are
    /// submitted.
    private func collect(_ head: Span<UInt8>) {
        unsafe fields.removeAll()
        var lineEnd = 12
        precondition(head.count >= 15, "no status line")
        while !head.holdsLineEnd(at: lineEnd, end: head.count), lineEnd < head.count {
            lineEnd += 1
        }
        unsafe head.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            // After `HTTP/1.1 `.
            unsafe fields.append(":status", unsafe base + 9, 3)
        }
        unsafe fields.appendLines(head, from: lineEnd + 2)
    }

    // MARK: - The end

    /// Tells the client to open no more streams: those that are open are answered (RFC 9113 §6.8).
    ///
    /// Streams that the client opens before it knows are answered too; a second call refuses them
    /// at once.
    package func shutDownGracefully() {
        switch shutdown {
        case .none:
            shutdown = .announced
            unsafe nghttp2_submit_shutdown_notice(library)
        case .announced:
            shutdown = .final
            unsafe nghttp2_submit_goaway(
                library, 0, nghttp2_session_get_last_proc_stream_id(library), 0, nil, 0)
        case .final: break
        }
    }

    // MARK: - Requests

    override func headBegan(_ id: Int32, category: nghttp2_headers_category) {
        if category != NGHTTP2_HCAT_REQUEST {
            guard let stream = stream(id) else { return }
            return unsafe section.begin(stream, isTrailers: true)
        }
        let stream = takeStream()
        stream.id = id
        unsafe nghttp2_session_set_stream_user_data(
            library, id, Unmanaged.passUnretained(stream).toOpaque())
        unsafe section.begin(stream, isTrailers: false)
        unsafe request.begin()
        // Stands against what the request's own field says (RFC 9218 §7).
        if let priority = unsafe earlyPriorities.take(id) { apply(priority, to: id) }
    }

    override func fieldCame(
        _ id: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch unsafe section.count(name, value, settings) {
        case .refused: break
        case .tooLarge: return false
        case .fits where unsafe section.isTrailers: unsafe section.appendTrailer(name, value)
        case .fits: unsafe request.append(name, value)
        }
        return true
    }

    override func headEnded(
        _ id: Int32, category: nghttp2_headers_category, endsStream: Bool
    ) {
        guard let stream = unsafe section.end() else { return }
        if unsafe section.isTrailers {
            guard stream.isAnnounced else { return }
            guard stream.refusal == nil else { return reset(stream, .enhanceYourCalm) }
            return endBody(stream)
        }
        unsafe request.finish(hasBody: !endsStream)
        if unsafe request.isMalformed, stream.refusal == nil {
            reset(stream, .protocolError)
            return blame()
        }
        stream.isAnnounced = true
        stream.isRemoteEnded = endsStream
        if let refusal = stream.refusal {
            stream.refusal = nil
            delegate.requestRefused(stream, refusal, hasBody: !endsStream)
        } else {
            let text = unsafe request.text.bytes
            unsafe delegate.requestArrived(
                stream, head: Span(_unsafeElements: text), linesCount: request.linesCount,
                hasBody: !endsStream)
        }
    }

    override func bodyCame(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let stream = stream(id) else {
            unsafe nghttp2_session_consume(library, id, bytes.count)
            return
        }
        stream.bytesUnconsumed += bytes.count
        delegate.bodyArrived(stream, unsafe Span(_unsafeElements: bytes))
    }

    override func streamEnded(_ id: Int32) {
        guard let stream = stream(id), stream.isAnnounced else { return }
        endBody(stream)
    }

    private func endBody(_ stream: HTTP2Stream) {
        stream.isRemoteEnded = true
        let text = unsafe section.trailers(of: stream)
        delegate.bodyEnded(stream, trailers: unsafe Span(_unsafeElements: text))
    }

    // MARK: - Frames

    override func frameCame(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        guard shutdown == .announced, UInt32(head.type) == NGHTTP2_PING.rawValue,
            head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        else { return }
        shutDownGracefully()
    }

    /// Frames for streams that nghttp2 has forgotten, and PRIORITY, which it ignores.
    override func judge(_ head: FrameHead) -> HTTP2ErrorCode? {
        let openBlock = unsafe blockBefore
        unsafe blockBefore = unsafe walk.openBlock
        if let code = super.judge(head) { return code }
        guard openBlock == nil else { return nil }
        switch head.type {
        case FrameHead.priority:
            // A stream may not depend on itself (RFC 7540 §5.3.1).
            return head.stream == 0 || head.other == head.stream ? .protocolError : nil
        case FrameHead.priorityUpdate: return judgeUpdate(head)
        case FrameHead.headers:
            guard head.stream & 1 == 1 else { return nil }
            if unsafe head.stream > closedStreams.last {
                unsafe closedStreams.opened(head.stream)
                return nil
            }
        case FrameHead.data: break
        default: return nil
        }
        guard head.stream & 1 == 1, unsafe head.stream <= closedStreams.last,
            unsafe nghttp2_session_find_stream(library, head.stream) == nil
        else { return nil }
        switch unsafe closedStreams.verdict(head.stream) {
        case .ignored: return nil
        case .ended: return .streamClosed
        case .skipped: return head.type == FrameHead.data ? .streamClosed : .protocolError
        }
    }

    /// Reads PRIORITY_UPDATE (RFC 9218 §7.1), which nghttp2 is not let to: what it keeps for a
    /// stream that is not open yet, version 1.52 frees while it is in use.
    private func judgeUpdate(_ head: FrameHead) -> HTTP2ErrorCode? {
        guard head.stream == 0 else { return .protocolError }
        guard let id = head.other else { return .frameSizeError }
        // Nothing is pushed here, so no even stream has a priority.
        guard id & 1 == 1 else { return .protocolError }
        guard let value = unsafe walk.updateValue, let priority = StreamPriority(value.span) else {
            return nil
        }
        if unsafe id > closedStreams.last {
            unsafe earlyPriorities.set(id, priority)
        } else {
            apply(priority, to: id)
        }
        return nil
    }

    private func apply(_ priority: StreamPriority, to id: Int32) {
        var value = nghttp2_extpri(
            urgency: priority.urgency, inc: priority.isIncremental ? 1 : 0)
        unsafe nghttp2_session_change_extpri_stream_priority(library, id, &value, 1)
    }

    override func frameWent(_ frame: UnsafePointer<nghttp2_frame>) {
        unsafe super.frameWent(frame)
        let head = unsafe frame.pointee.hd
        if UInt32(head.type) == NGHTTP2_GOAWAY.rawValue, shutdown == .announced {
            // Not submitted with GOAWAY, which it would overtake.
            unsafe Self.shutdownPing.span.withUnsafeBufferPointer {
                _ = unsafe nghttp2_submit_ping(library, 0, $0.baseAddress)
            }
            return
        }
        guard head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0,
            UInt32(head.type) <= NGHTTP2_HEADERS.rawValue, let stream = stream(head.stream_id),
            !stream.isRemoteEnded
        else { return }
        // The answer is complete: the rest of the request is not wanted (RFC 9113 §8.1).
        reset(stream, .noError)
    }

    override func drained(_ stream: HTTP2Stream) {
        delegate.drained(stream)
    }

    override func closed(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        unsafe section.forget(stream)
        if !stream.isReset {
            unsafe closedStreams.ended(stream.id)
            if code == .noError { unsafe flood.earn(FloodGuard.streamGain) }
        }
        guard stream.isAnnounced else { return }
        delegate.closed(stream, code: code)
    }
}
