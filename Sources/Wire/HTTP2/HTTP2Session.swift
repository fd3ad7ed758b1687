import CNgHTTP2
package import Ground
package import NIOCore

/// One connection of HTTP/2 (RFC 9113), bytes in and bytes out: what both ends have in common.
///
/// Belongs to one event loop, and no access of its properties or of a stream's holds across a call
/// of a delegate: the dynamic checks of exclusive access, a sixth of the time, are left out.
/// Calls of the delegate come from inside ``receive(_:now:)`` and
/// ``takeOutput(into:bytesMax:now:)``; they may use every verb on streams, but neither of these
/// two.
@safe
package class HTTP2Session {
    package let settings: HTTP2Settings
    let isServer: Bool
    /// Streams that are open or being closed.
    package var openStreamCount: Int { unsafe streams.count }
    /// Bytes of bodies written and not framed yet, of all streams.
    package internal(set) var bytesQueued = 0
    /// Why this end has closed the connection, if it has.
    package private(set) var failure: HTTP2ErrorCode?

    /// nghttp2's state; freed with this object.
    @exclusivity(unchecked) var nghttp2Session: OpaquePointer?
    @exclusivity(unchecked) var output = FrameOutputBuffer()
    /// Bytes after which the present turn of output ends.
    @exclusivity(unchecked) var outputBytesMax = 0
    @exclusivity(unchecked) var fields = FieldVector(capacity: 64)
    /// In no order; each knows its index.
    @exclusivity(unchecked) package internal(set) var streams: [HTTP2Stream] = []
    @exclusivity(unchecked) var now = Instant.zero
    @exclusivity(unchecked) var frameScanner: FrameScanner
    @exclusivity(unchecked) var flood: FloodGuard
    /// Of the connection's window, while bytes are queued.
    @exclusivity(unchecked) var connectionStall = WindowStall()
    @exclusivity(unchecked) private var pool: [HTTP2Stream] = []
    private var isProcessing = false
    /// The delegate wants nothing more for now.
    package private(set) var isReceivingPaused = false
    private var pausedInput = PausedInput()

    /// What came while the session was held.
    private struct PausedInput {
        var bytes: [UInt8] = []
        /// How many of them the walk knows.
        var position = 0
    }

    init(settings: HTTP2Settings, isServer: Bool) {
        self.settings = settings
        self.isServer = isServer
        unsafe frameScanner = FrameScanner(
            prefaceBytes: isServer ? Int(NGHTTP2_CLIENT_MAGIC_LEN) : 0)
        unsafe flood = FloodGuard(
            unitsMax: settings.floodUnitsMax, unitsPerSecond: settings.floodUnitsPerSecond)
        unsafe nghttp2Session = Self.makeNGHTTP2Session(settings, isServer: isServer)
        unsafe nghttp2_session_set_user_data(
            nghttp2Session, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        unsafe nghttp2_session_del(nghttp2Session)
    }

    /// Takes in what has come from the peer; false if this ended the connection: send what is in
    /// the output and close.
    ///
    /// An error that nghttp2 finds is known when its GOAWAY has been framed: see ``isOver``.
    package func receive(_ bytes: Span<UInt8>, now: Instant) -> Bool {
        guard !isReceivingPaused else {
            pausedInput.bytes += bytes.copy(0..<bytes.count)
            return failure == nil
        }
        return process(bytes, from: 0, now: now)
    }

    /// Takes in nothing more behind the present frame until ``goOn(now:)``; what comes is kept.
    package func pauseReceiving() {
        isReceivingPaused = true
    }

    /// Takes in what was held, as ``receive(_:now:)`` does; the delegate may hold again.
    package func resumeReceiving(now: Instant) -> Bool {
        let kept = pausedInput
        pausedInput = PausedInput()
        isReceivingPaused = false
        return process(kept.bytes.span, from: kept.position, now: now)
    }

    /// Takes in `bytes`, of which the walk knows those before `start`, and nghttp2 none.
    private func process(_ bytes: Span<UInt8>, from start: Int, now: Instant) -> Bool {
        precondition(!isProcessing, "receive was called by a delegate")
        unsafe self.now = now
        isProcessing = true
        defer { isProcessing = false }
        var (position, fed) = (start, 0)
        while failure == nil {
            if isReceivingPaused {
                pausedInput = PausedInput(
                    bytes: bytes.copy(fed..<bytes.count), position: position - fed)
                return true
            }
            switch unsafe frameScanner.next(bytes, at: &position) {
            case .frame(let head, let start):
                feedNGHTTP2(bytes.extracting(fed..<max(fed, start)))
                if failure == nil, let code = validateFrame(head) { fail(code) }
                if start < 0 { unsafe feedNGHTTP2(frameScanner.bufferedBytes.span) }
                fed = start < 0 ? position : start
            case .end(let end):
                feedNGHTTP2(bytes.extracting(fed..<max(fed, end)))
                if failure == nil, queuedFrames > settings.queuedFramesMax {
                    fail(.enhanceYourCalm)
                }
                return failure == nil
            }
        }
        return false
    }

    private func feedNGHTTP2(_ bytes: Span<UInt8>) {
        guard bytes.count > 0, failure == nil else { return }
        let taken = unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe nghttp2_session_mem_recv(nghttp2Session, buffer.baseAddress, buffer.count)
        }
        if taken < 0 { fail(Self.errorCode(ofNGHTTP2Error: Int32(taken))) }
    }

    /// Judges a frame by its head, before nghttp2 sees it; the code with which the connection is to
    /// be ended, if it is.
    func validateFrame(_ head: FrameHeader) -> HTTP2ErrorCode? {
        let cost = FloodGuard.cost(of: head)
        if cost < 0 {
            unsafe flood.credit(-cost)
        } else if cost > 0, unsafe !flood.spend(cost, now: now) {
            return .enhanceYourCalm
        }
        return nil
    }

    /// True if ``takeOutput(into:bytesMax:now:)`` would give bytes.
    package var hasOutput: Bool { unsafe nghttp2_session_want_write(nghttp2Session) != 0 }

    /// True if nothing is to be read or written any more; close the connection.
    package var isFinished: Bool {
        if hasOutput { return false }
        return unsafe failure != nil || nghttp2_session_want_read(nghttp2Session) == 0
    }

    /// Frames that wait to be written, DATA not counted.
    package var queuedFrames: Int {
        unsafe nghttp2_session_get_outbound_queue_size(nghttp2Session)
    }

    /// Moves what is to be sent to the end of `buffers`: whole frames, by priority, until they hold
    /// `bytesMax` bytes or more; how many bytes that is.
    @discardableResult
    package func takeOutput(
        into buffers: inout [ByteBuffer], bytesMax: Int, now: Instant
    ) -> Int {
        precondition(!isProcessing, "takeOutput was called by a delegate")
        isProcessing = true
        defer { isProcessing = false }
        unsafe self.now = now
        unsafe output.beginTurn()
        unsafe outputBytesMax = bytesMax
        while unsafe output.count < bytesMax {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(nghttp2Session, &start)
            guard count > 0 else {
                if count < 0 { fail(.internalError) }
                break
            }
            unsafe output.append(UnsafeBufferPointer(start: start, count: count))
        }
        return unsafe output.drain(into: &buffers)
    }

    /// Ends the connection: GOAWAY with `code`, after which nothing is read.
    package func goAway(_ code: HTTP2ErrorCode) {
        fail(code)
    }

    /// The transport is gone: ends every stream that is open, and nothing more is read or sent.
    package func transportClosed(_ code: HTTP2ErrorCode) {
        fail(code)
        while let stream = unsafe streams.last {
            streamClosed(stream, code)
            unsafe nghttp2_session_set_stream_user_data(nghttp2Session, stream.id, nil)
            removeStream(at: stream.index)
        }
    }

    /// Ends the connection with an error of its own.
    func fail(_ code: HTTP2ErrorCode) {
        guard failure == nil else { return }
        failure = code
        unsafe nghttp2_session_terminate_session(nghttp2Session, code.rawValue)
    }

    // MARK: - Streams

    /// An object for a stream, which lives as long as nghttp2 knows of it.
    func makeStream() -> HTTP2Stream {
        let stream = unsafe pool.popLast() ?? HTTP2Stream()
        stream.open()
        stream.index = unsafe streams.count
        unsafe streams.append(stream)
        return stream
    }

    @inline(__always)
    func stream(_ id: Int32) -> HTTP2Stream? {
        guard let pointer = unsafe nghttp2_session_get_stream_user_data(nghttp2Session, id) else {
            return nil
        }
        return unsafe Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// nghttp2 has closed a stream.
    func removeClosedStream(_ id: Int32, _ code: HTTP2ErrorCode) {
        if let index = notifyStreamClosed(id, code) { removeStream(at: index) }
    }

    /// Tells the delegate that a stream is closed; the stream's index.
    ///
    /// A function of its own, so that it holds the stream no more when that is forgotten.
    @inline(never)
    private func notifyStreamClosed(_ id: Int32, _ code: HTTP2ErrorCode) -> Int? {
        guard let stream = stream(id) else { return nil }
        streamClosed(stream, stream.errorCodeOverride ?? code)
        return stream.index
    }

    /// Forgets the stream kept at `index`, which nghttp2 has closed; what was not consumed of it is
    /// given back to the connection's window, which no other call will do.
    func removeStream(at index: Int) {
        var stream = unsafe streams.removeLast()
        if unsafe index < streams.count {
            stream.index = index
            unsafe swap(&streams[index], &stream)
        }
        recordDequeued(stream.bytesQueued)
        if isServer, stream.bytesUnconsumed > 0 {
            unsafe nghttp2_session_consume_connection(nghttp2Session, stream.bytesUnconsumed)
            stream.bytesUnconsumed = 0
        }
        stream.close()
        // Used again if nobody else holds it.
        if unsafe pool.count < settings.concurrentStreamsMax, isKnownUniquelyReferenced(&stream) {
            unsafe pool.append(stream)
        }
    }

    // MARK: - For the ends to override

    func headerBlockStarted(_ id: Int32, category: nghttp2_headers_category) {}
    func fieldReceived(
        _ id: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool { true }
    func headerBlockEnded(_ id: Int32, category: nghttp2_headers_category, endsStream: Bool) {}
    func dataReceived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {}
    func streamEnded(_ id: Int32) {}
    func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {}

    /// Takes note of a frame that was framed into the output.
    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_GOAWAY.rawValue:
            let code = unsafe frame.pointee.goaway.error_code
            if failure == nil, code != 0 { failure = HTTP2ErrorCode(rawValue: code) }
        case NGHTTP2_RST_STREAM.rawValue:
            guard let stream = stream(head.stream_id), !stream.isReset else { return }
            // nghttp2 found a fault with it.
            stream.isReset = true
            let code = unsafe HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code)
            // A window above the maximum by a change of INITIAL_WINDOW_SIZE is a connection error
            // (RFC 9113 §6.9.2); that by WINDOW_UPDATE, which looks the same here, may be one.
            if code == .flowControlError { fail(code) } else { chargePeerError() }
        default: break
        }
    }

    /// Ends the stream of a head that could not be sent: it is larger than any that is sent here.
    func frameFailed(_ frame: UnsafePointer<nghttp2_frame>, error: Int32) {
        let head = unsafe frame.pointee.hd
        switch error {
        case NGHTTP2_ERR_SESSION_CLOSING.rawValue, NGHTTP2_ERR_STREAM_CLOSING.rawValue,
            NGHTTP2_ERR_STREAM_CLOSED.rawValue, NGHTTP2_ERR_START_STREAM_NOT_ALLOWED.rawValue:
            // The stream has ended already, or nghttp2 ends it.
            return
        default: break
        }
        guard UInt32(head.type) == NGHTTP2_HEADERS.rawValue, let stream = stream(head.stream_id)
        else { return }
        if unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
            // The peer knows nothing of the stream, which nghttp2 closes: as refused, though it
            // would fail again.
            stream.errorCodeOverride = .internalError
        } else {
            reset(stream, .internalError)
        }
    }

    /// A stream failed by a fault of the peer's.
    func chargePeerError() {
        if unsafe !flood.spend(FloodGuard.resetCost, now: now) { fail(.enhanceYourCalm) }
    }

    func streamDrained(_ stream: HTTP2Stream) {}
    func streamClosed(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {}
}

/// Why a stream or a connection was ended (RFC 9113 §7); codes that are not known are kept as they
/// came.
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let noError = HTTP2ErrorCode(rawValue: 0x0)
    package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    package static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    package static let settingsTimeout = HTTP2ErrorCode(rawValue: 0x4)
    package static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
    package static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
    package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    package static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    package static let connectError = HTTP2ErrorCode(rawValue: 0xA)
    package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)
    package static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xC)
    package static let http11Required = HTTP2ErrorCode(rawValue: 0xD)
}
