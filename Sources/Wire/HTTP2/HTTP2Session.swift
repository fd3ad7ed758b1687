import CNgHTTP2
package import Ground
package import NIOCore

/// One HTTP/2 connection (RFC 9113) without a transport: the part common to both ends.
///
/// Confined to one event loop. No access to a property of the session or of a stream extends across
/// a call of the delegate; therefore the dynamic exclusivity checks, which took a sixth of the
/// time, are disabled. The delegate is called from inside ``receive(_:now:)`` and
/// ``takeOutput(into:bytesMax:now:)``; it may call every operation on streams, but neither of these
/// two.
@safe
package class HTTP2Session {
    /// The limits, and the settings announced to the peer.
    package let settings: HTTP2Settings
    let isServer: Bool
    /// The number of streams open or being closed.
    package var openStreamCount: Int { unsafe streams.count }
    /// The number of bytes of bodies written and not yet framed, of all streams.
    package internal(set) var bytesQueued = 0
    /// The error with which this end closed the connection, or that was given when the transport
    /// was lost; `nil` while the connection is open.
    package private(set) var failure: HTTP2ErrorCode?

    /// The state of nghttp2, freed with this object.
    @exclusivity(unchecked) var nghttp2Session: OpaquePointer?
    @exclusivity(unchecked) var output = FrameOutputBuffer()
    /// The number of bytes at which the current turn of output ends.
    @exclusivity(unchecked) var outputBytesMax = 0
    @exclusivity(unchecked) var fields = FieldVector(capacity: 64)
    /// The streams in no particular order; each knows its index.
    @exclusivity(unchecked) package internal(set) var streams: [HTTP2Stream] = []
    @exclusivity(unchecked) var now = Instant.zero
    @exclusivity(unchecked) var frameScanner: FrameScanner
    @exclusivity(unchecked) var flood: FloodGuard
    /// The stall of the connection's window, while bytes are queued.
    @exclusivity(unchecked) var connectionStall = WindowStall()
    @exclusivity(unchecked) private var pool: [HTTP2Stream] = []
    private var isProcessing = false
    /// True while the delegate has paused input.
    package private(set) var isReceivingPaused = false
    private var pausedInput = PausedInput()

    /// The bytes received while input was paused.
    private struct PausedInput {
        var bytes: [UInt8] = []
        /// The number of these bytes that the scanner has processed.
        var position = 0
    }

    init(settings: HTTP2Settings, isServer: Bool) {
        self.settings = settings
        self.isServer = isServer
        unsafe frameScanner = FrameScanner(
            prefaceBytes: isServer ? Int(NGHTTP2_CLIENT_MAGIC_LEN) : 0)
        unsafe flood = FloodGuard(
            unitsMax: settings.floodUnitsMax, unitsPerSecond: settings.floodUnitsPerSecond)
        unsafe nghttp2Session = NGHTTP2Library.makeSession(settings, isServer: isServer)
        unsafe nghttp2_session_set_user_data(
            nghttp2Session, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        unsafe nghttp2_session_del(nghttp2Session)
    }

    /// Processes bytes from the peer, or keeps them while input is paused.
    ///
    /// An error that nghttp2 finds ends the connection only once its GOAWAY is framed: see
    /// ``isFinished``.
    ///
    /// - Parameters:
    ///   - bytes: the received bytes.
    ///   - now: the present time.
    /// - Returns: false if this ended the connection: send the output, and close.
    package func receive(_ bytes: Span<UInt8>, now: Instant) -> Bool {
        guard !isReceivingPaused else {
            pausedInput.bytes += bytes.copy(0..<bytes.count)
            return failure == nil
        }
        return process(bytes, from: 0, now: now)
    }

    /// Pauses input after the current frame until ``resumeReceiving(now:)``; further bytes are
    /// kept.
    package func pauseReceiving() {
        isReceivingPaused = true
    }

    /// Resumes input with the bytes kept, as ``receive(_:now:)`` does; the delegate may pause
    /// again.
    package func resumeReceiving(now: Instant) -> Bool {
        let kept = pausedInput
        pausedInput = PausedInput()
        isReceivingPaused = false
        return process(kept.bytes.span, from: kept.position, now: now)
    }

    /// Processes `bytes`; the scanner has processed those before `start`, and nghttp2 none of them.
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

    /// Passes bytes to nghttp2, unless the connection has failed; its error ends the connection.
    private func feedNGHTTP2(_ bytes: Span<UInt8>) {
        guard bytes.count > 0, failure == nil else { return }
        let taken = unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe nghttp2_session_mem_recv(nghttp2Session, buffer.baseAddress, buffer.count)
        }
        if taken < 0 { fail(HTTP2ErrorCode(nghttp2Error: Int32(taken))) }
    }

    /// Checks a frame by its header before nghttp2 sees it, and charges its cost to the peer's
    /// budget; returns the error that ends the connection, or `nil`.
    func validateFrame(_ head: FrameHeader) -> HTTP2ErrorCode? {
        let cost = FloodGuard.cost(of: head)
        if cost < 0 {
            unsafe flood.credit(-cost)
        } else if cost > 0, unsafe !flood.spend(cost, now: now) {
            return .enhanceYourCalm
        }
        return nil
    }

    /// True if ``takeOutput(into:bytesMax:now:)`` would return bytes.
    package var hasOutput: Bool { unsafe nghttp2_session_want_write(nghttp2Session) != 0 }

    /// True if nothing more is to be read or written; close the connection.
    package var isFinished: Bool {
        if hasOutput { return false }
        return unsafe failure != nil || nghttp2_session_want_read(nghttp2Session) == 0
    }

    /// The number of frames waiting to be written, without DATA.
    package var queuedFrames: Int {
        unsafe nghttp2_session_get_outbound_queue_size(nghttp2Session)
    }

    /// Moves output to the end of `buffers`: whole frames, by priority, until they hold `bytesMax`
    /// bytes or more.
    ///
    /// - Parameters:
    ///   - buffers: the buffers to append to.
    ///   - bytesMax: the number of bytes at which to stop.
    ///   - now: the present time.
    /// - Returns: the number of bytes moved.
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

    /// Ends the connection: queues GOAWAY with `code`, after which nothing is read; does nothing if
    /// this end has closed it already.
    package func goAway(_ code: HTTP2ErrorCode) {
        fail(code)
    }

    /// Ends all open streams with `code` after the transport was lost, and notifies the delegate of
    /// each; nothing more is read or sent.
    package func transportClosed(_ code: HTTP2ErrorCode) {
        fail(code)
        while let stream = unsafe streams.last {
            streamClosed(stream, code)
            unsafe nghttp2_session_set_stream_user_data(nghttp2Session, stream.id, nil)
            removeStream(at: stream.index)
        }
    }

    /// Ends the connection with an error, of which only the first counts: queues GOAWAY.
    func fail(_ code: HTTP2ErrorCode) {
        guard failure == nil else { return }
        failure = code
        unsafe nghttp2_session_terminate_session(nghttp2Session, code.rawValue)
    }

    // MARK: - Streams

    /// Creates or reuses an object for a stream; it lives as long as nghttp2 knows the stream.
    func makeStream() -> HTTP2Stream {
        let stream = unsafe pool.popLast() ?? HTTP2Stream()
        stream.open()
        stream.index = unsafe streams.count
        unsafe streams.append(stream)
        return stream
    }

    /// Returns the stream with this id; `nil` if nghttp2 does not know it any more.
    @inline(__always)
    func stream(_ id: Int32) -> HTTP2Stream? {
        guard let pointer = unsafe nghttp2_session_get_stream_user_data(nghttp2Session, id) else {
            return nil
        }
        return unsafe Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// Notifies the delegate of a stream that nghttp2 has closed, and removes it.
    func removeClosedStream(_ id: Int32, _ code: HTTP2ErrorCode) {
        if let index = notifyStreamClosed(id, code) { removeStream(at: index) }
    }

    /// Notifies the delegate that a stream is closed, and returns the stream's index.
    ///
    /// A separate function, so that it no longer holds a reference when the stream is removed.
    @inline(never)
    private func notifyStreamClosed(_ id: Int32, _ code: HTTP2ErrorCode) -> Int? {
        guard let stream = stream(id) else { return nil }
        streamClosed(stream, stream.errorCodeOverride ?? code)
        return stream.index
    }

    /// Removes the stream at `index`, which nghttp2 has closed.
    ///
    /// On a server, its bytes not consumed are returned to the connection's window here, because no
    /// later call does so; a client has returned them on arrival.
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
        // Reused if there is no other reference.
        if unsafe pool.count < settings.concurrentStreamsMax, isKnownUniquelyReferenced(&stream) {
            unsafe pool.append(stream)
        }
    }

    // MARK: - Overridden by both ends

    /// Handles the start of a head or a trailer section.
    func headerBlockStarted(_ id: Int32, category: nghttp2_headers_category) {}
    /// Handles a field; returns false to end the connection.
    func fieldReceived(
        _ id: Int32, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool { true }
    /// Handles the complete head or trailer section; `endsStream` is true if the peer's half ends
    /// with it.
    func headerBlockEnded(_ id: Int32, category: nghttp2_headers_category, endsStream: Bool) {}
    func dataReceived(_ id: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {}
    /// Handles the end of the peer's half by a DATA frame.
    func streamEnded(_ id: Int32) {}
    /// Handles a complete frame other than HEADERS and DATA.
    func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) {}

    /// Handles errors that nghttp2 has found, when their frame is written: GOAWAY ends the
    /// connection, and RST_STREAM is charged to the peer or ends the connection too.
    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_GOAWAY.rawValue:
            let code = unsafe frame.pointee.goaway.error_code
            if failure == nil, code != 0 { failure = HTTP2ErrorCode(rawValue: code) }
        case NGHTTP2_RST_STREAM.rawValue:
            guard let stream = stream(head.stream_id), !stream.isReset else { return }
            // nghttp2 found an error in it.
            stream.isReset = true
            let code = unsafe HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code)
            // A window beyond the maximum is a connection error if a change of INITIAL_WINDOW_SIZE
            // caused it (RFC 9113 §6.9.2); if WINDOW_UPDATE did, which looks the same here, it may
            // be one.
            if code == .flowControlError { fail(code) } else { chargePeerError() }
        default: break
        }
    }

    /// Ends the stream of a head that cannot be sent because it is too large; ignores other frames
    /// and streams that end anyway.
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
            // The peer does not know the stream. nghttp2 closes it as refused, but a retry would
            // fail again.
            stream.errorCodeOverride = .internalError
        } else {
            reset(stream, .internalError)
        }
    }

    /// Charges the peer for a stream that failed by the peer's error; ends the connection if the
    /// budget is used up.
    func chargePeerError() {
        if unsafe !flood.spend(FloodGuard.resetCost, now: now) { fail(.enhanceYourCalm) }
    }

    /// Handles a stream whose queue has become empty, and which this end has not ended.
    func streamDrained(_ stream: HTTP2Stream) {}
    /// Handles the end of a stream, before it is removed.
    func streamClosed(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {}
}

/// An error code for a stream or a connection (RFC 9113 §7); unknown codes are kept.
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
    /// The code as sent.
    package var rawValue: UInt32

    /// Creates an error code from its number.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The stream or connection ended without an error.
    package static let noError = HTTP2ErrorCode(rawValue: 0x0)
    /// The peer broke the protocol.
    package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    /// The sender failed internally.
    package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    /// The peer broke flow control.
    package static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    /// SETTINGS were not acknowledged in time.
    package static let settingsTimeout = HTTP2ErrorCode(rawValue: 0x4)
    /// A frame arrived for a half-closed stream.
    package static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
    /// A frame has an invalid size.
    package static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
    /// The stream was refused before any processing.
    package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    /// The stream is no longer needed.
    package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    /// The HPACK state cannot be maintained.
    package static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    /// The connection of a CONNECT request failed.
    package static let connectError = HTTP2ErrorCode(rawValue: 0xA)
    /// The peer causes excessive load.
    package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)
    /// The transport is not secure enough.
    package static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xC)
    /// HTTP/1.1 must be used instead.
    package static let http11Required = HTTP2ErrorCode(rawValue: 0xD)
}
