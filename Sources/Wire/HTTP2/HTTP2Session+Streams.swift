import CNgHTTP2
package import Ground
package import NIOCore

/// What is done with a stream, on both ends.
extension HTTP2Session {
    /// Sends `body` after what was written before; by reference, never copied.
    package func write(_ stream: HTTP2Stream, _ body: ByteBuffer) {
        guard !stream.isClosed, !stream.isReset, !stream.isEnding, body.readableBytes > 0
        else { return }
        stream.append(body)
        bytesQueued += body.readableBytes
        resume(stream)
    }

    /// Ends this half of the stream after all that was written; `trailers` are field lines, each
    /// with its CR LF.
    package func end(_ stream: HTTP2Stream, trailers: [UInt8]? = nil) {
        guard !stream.isClosed, !stream.isReset, !stream.isEnding else { return }
        stream.isEnding = true
        stream.trailers = trailers
        resume(stream)
    }

    /// Ends both halves at once; what was not framed is dropped.
    ///
    /// The delegate's `closed` follows when RST_STREAM has been framed.
    package func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        guard !stream.isClosed, !stream.isReset else { return }
        stream.isReset = true
        recordDequeued(stream.bytesQueued)
        stream.dropQueue()
        unsafe nghttp2_submit_rst_stream(nghttp2Session, 0, stream.id, code.rawValue)
    }

    func resume(_ stream: HTTP2Stream) {
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        unsafe nghttp2_session_resume_data(nghttp2Session, stream.id)
    }

    /// Where nghttp2 asks for the body of `stream`, which lives until nghttp2 has closed it.
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

    /// The length of the next DATA frame, or that there is none for now.
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

    private func submitTrailers(_ trailers: [UInt8], of stream: HTTP2Stream) {
        unsafe fields.removeAll()
        let span = trailers.span
        unsafe fields.appendLines(span, from: 0)
        _ = unsafe span.withUnsafeBufferPointer { _ in
            unsafe nghttp2_submit_trailer(nghttp2Session, stream.id, fields.fields, fields.count)
        }
    }

    /// Puts a DATA frame into the output: its head, and so much of the queue.
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

/// Which of the peer's windows are in the way of bytes that were written (RFC 9113 §5.2).
extension HTTP2Session {
    /// Looks at the windows: a stall counts from the first look that finds it.
    ///
    /// To be called each tick, before the two that follow are asked; nothing else notes stalls.
    package func updateStalls(now: Instant) {
        guard bytesQueued > 0 else { return }
        if isConnectionWindowUsedUp { unsafe connectionStall.begin(now) }
        for stream in unsafe streams where stream.bytesQueued > 0 && stream.isHeadSubmitted {
            if isWindowUsedUp(of: stream) { stream.stall.begin(now) }
        }
    }

    /// The streams whose own window has been in the way since `limit` or longer, during which less
    /// than 1 KiB of them was framed; those that only wait for the connection's are not among them.
    package func stalledStreams(since limit: Instant) -> [HTTP2Stream] {
        guard bytesQueued > 0 else { return [] }
        return unsafe streams.filter { stream in
            guard let since = stream.stall.since, since <= limit else { return false }
            return isWindowUsedUp(of: stream)
        }
    }

    /// Since when the connection's window has been in the way of bytes of any stream, while less
    /// than 1 KiB was framed in all; nil while it is not.
    ///
    /// Streams that are stalled themselves are to be reset first: it may be only they that wait.
    package var connectionStalledSince: Instant? {
        isConnectionWindowUsedUp ? unsafe connectionStall.since : nil
    }

    /// May be negative, after a change of SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.9.2).
    private func isWindowUsedUp(of stream: HTTP2Stream) -> Bool {
        unsafe nghttp2_session_get_stream_remote_window_size(nghttp2Session, stream.id) <= 0
    }

    private var isConnectionWindowUsedUp: Bool {
        unsafe nghttp2_session_get_remote_window_size(nghttp2Session) <= 0
    }

    /// Takes note that bytes of bodies are not to be framed any more, or were.
    @inline(__always)
    func recordDequeued(_ bytes: Int) {
        bytesQueued -= bytes
        if bytesQueued == 0 { unsafe connectionStall.end() }
    }
}
