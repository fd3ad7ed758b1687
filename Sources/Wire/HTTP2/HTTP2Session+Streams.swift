import CNgHTTP2
package import Ground
package import NIOCore

/// Operations on a stream, common to both ends.
extension HTTP2Session {
    /// Queues `body` after earlier writes, by reference; does nothing if the stream is closed,
    /// reset or ended.
    package func write(_ stream: HTTP2Stream, _ body: ByteBuffer) {
        guard !stream.isClosed, !stream.isReset, !stream.isEnding, body.readableBytes > 0
        else { return }
        stream.append(body)
        bytesQueued += body.readableBytes
        resume(stream)
    }

    /// Ends this half of the stream after all queued bytes; does nothing if it is ended already, or
    /// the stream is closed or reset.
    ///
    /// - Parameters:
    ///   - stream: the stream to end.
    ///   - trailers: field lines, each with its CR LF; `nil` for none.
    package func end(_ stream: HTTP2Stream, trailers: [UInt8]? = nil) {
        guard !stream.isClosed, !stream.isReset, !stream.isEnding else { return }
        stream.isEnding = true
        stream.trailers = trailers
        resume(stream)
    }

    /// Resets the stream, unless it is closed or reset already: both halves end at once, and bytes
    /// not framed are dropped.
    ///
    /// The delegate's `streamClosed` follows once RST_STREAM is framed.
    package func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        guard !stream.isClosed, !stream.isReset else { return }
        stream.isReset = true
        recordDequeued(stream.bytesQueued)
        stream.dropQueue()
        unsafe nghttp2_submit_rst_stream(nghttp2Session, 0, stream.id, code.rawValue)
    }

    /// Has nghttp2 ask again for bytes of a stream that had none at its last request.
    func resume(_ stream: HTTP2Stream) {
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        unsafe nghttp2_session_resume_data(nghttp2Session, stream.id)
    }

    /// Returns the source of the stream's body for nghttp2; the stream outlives nghttp2's use of
    /// it.
    func dataProvider(_ stream: HTTP2Stream) -> nghttp2_data_provider {
        unsafe nghttp2_data_provider(
            source: nghttp2_data_source(ptr: Unmanaged.passUnretained(stream).toOpaque()),
            read_callback: { _, _, _, countMax, flags, source, user in
                guard let flags = unsafe flags, let pointer = unsafe source?.pointee.ptr,
                    let user = unsafe user
                else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
                let session = unsafe Unmanaged<HTTP2Session>.fromOpaque(user)
                let stream = unsafe Unmanaged<HTTP2Stream>.fromOpaque(pointer)
                return unsafe session._withUnsafeGuaranteedRef { session in
                    unsafe stream._withUnsafeGuaranteedRef { stream in
                        unsafe session.nextDataLength(of: stream, countMax, &flags.pointee)
                    }
                }
            })
    }

    /// Returns the length of the stream's next DATA frame, or that there is none for now; submits
    /// the trailers with the last one.
    private func nextDataLength(
        of stream: HTTP2Stream, _ countMax: Int, _ flags: inout UInt32
    ) -> Int {
        if stream.isReset { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        let count = min(countMax, stream.bytesQueued)
        if count == stream.bytesQueued, stream.isEnding {
            flags = NGHTTP2_DATA_FLAG_EOF.rawValue
            if let trailers = stream.trailers {
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                submitTrailers(trailers, of: stream)
            }
        } else if count == 0 {
            stream.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        if count > 0 { flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue }
        return count
    }

    /// Submits trailers, which nghttp2 sends after the queued bytes and which end the stream.
    private func submitTrailers(_ trailers: [UInt8], of stream: HTTP2Stream) {
        unsafe fields.removeAll()
        let span = trailers.span
        unsafe fields.appendLines(span, from: 0)
        _ = unsafe span.withUnsafeBufferPointer { _ in
            unsafe nghttp2_submit_trailer(nghttp2Session, stream.id, fields.fields, fields.count)
        }
    }

    /// Appends a DATA frame to the output: its header, and `count` bytes of the queue.
    ///
    /// Notifies the delegate if the queue is empty then and this half of the stream is not ended.
    /// Returns nghttp2's code to pause once the turn of output is full, else 0.
    func appendDataFrame(
        _ head: UnsafeBufferPointer<UInt8>, _ count: Int, of stream: HTTP2Stream
    ) -> CInt {
        unsafe output.append(head)
        unsafe stream.dequeue(count, into: &output)
        unsafe flood.credit(FloodGuard.gain(ofData: count))
        unsafe connectionStall.recordProgress(count)
        recordDequeued(count)
        if stream.bytesQueued == 0, !stream.isEnding { streamDrained(stream) }
        return unsafe output.count < outputBytesMax ? 0 : NGHTTP2_ERR_PAUSE.rawValue
    }
}

/// Detection of stalled flow control: the peer's windows that block queued bytes (RFC 9113 §5.2).
extension HTTP2Session {
    /// Checks the windows; a stall counts from the first check that finds it.
    ///
    /// Must be called at each tick, before ``stalledStreams(since:)`` and
    /// ``connectionStalledSince`` are used; nothing else detects stalls.
    package func updateStalls(now: Instant) {
        guard bytesQueued > 0 else { return }
        if isConnectionWindowUsedUp { unsafe connectionStall.begin(now) }
        for stream in unsafe streams where stream.bytesQueued > 0 && stream.isHeadSubmitted {
            if isWindowUsedUp(of: stream) { stream.stall.begin(now) }
        }
    }

    /// Returns the streams whose own window has blocked them since `limit` or earlier, with less
    /// than 1 KiB framed meanwhile.
    ///
    /// Streams that only wait for the connection's window are not included.
    package func stalledStreams(since limit: Instant) -> [HTTP2Stream] {
        guard bytesQueued > 0 else { return [] }
        return unsafe streams.filter { stream in
            guard let since = stream.stall.since, since <= limit else { return false }
            return isWindowUsedUp(of: stream)
        }
    }

    /// The time since which the connection's window has blocked queued bytes, with less than 1 KiB
    /// framed in total; `nil` if it does not.
    ///
    /// Reset stalled streams first: they may be the only ones waiting.
    package var connectionStalledSince: Instant? {
        isConnectionWindowUsedUp ? unsafe connectionStall.since : nil
    }

    /// Returns true if the stream's window is used up.
    ///
    /// The window may be negative after a change of SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.9.2).
    private func isWindowUsedUp(of stream: HTTP2Stream) -> Bool {
        unsafe nghttp2_session_get_stream_remote_window_size(nghttp2Session, stream.id) <= 0
    }

    /// True if the peer's window of the whole connection is used up.
    private var isConnectionWindowUsedUp: Bool {
        unsafe nghttp2_session_get_remote_window_size(nghttp2Session) <= 0
    }

    /// Records that `bytes` of bodies have left the queue, framed or dropped; a stall of the
    /// connection ends when none are left.
    @inline(__always)
    func recordDequeued(_ bytes: Int) {
        bytesQueued -= bytes
        if bytesQueued == 0 { unsafe connectionStall.end() }
    }
}
