import CNgHTTP2
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
