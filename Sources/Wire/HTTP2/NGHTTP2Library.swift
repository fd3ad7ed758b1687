import CNgHTTP2

/// The linked nghttp2: its configuration, and its calls of an ``HTTP2Session``.
package enum NGHTTP2Library {
    /// The version at run time, such as `nghttp2 1.52.0`.
    package static var version: String {
        guard let info = unsafe nghttp2_version(0), let text = unsafe info.pointee.version_str
        else { return "nghttp2" }
        return unsafe "nghttp2 " + String(cString: text)
    }

    /// Creates nghttp2's state of a connection, whose user data must be set to its
    /// ``HTTP2Session``.
    static func makeSession(_ settings: HTTP2Settings, isServer: Bool) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        var library: OpaquePointer?
        unsafe nghttp2_session_callbacks_new(&callbacks)
        unsafe nghttp2_option_new(&options)
        unsafe setCallbacks(callbacks)
        unsafe nghttp2_option_set_no_auto_window_update(options, 1)
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        unsafe nghttp2_option_set_max_continuations(options, settings.continuationsAccepted)
        unsafe nghttp2_option_set_max_send_header_block_length(options, sentHeadBytesMax)
        unsafe nghttp2_option_set_max_outbound_ack(options, settings.queuedFramesMax)
        unsafe nghttp2_option_set_max_deflate_dynamic_table_size(
            options, settings.encoderTableBytesMax)
        if isServer {
            unsafe nghttp2_session_server_new2(&library, callbacks, nil, options)
        } else {
            unsafe nghttp2_session_client_new2(&library, callbacks, nil, options)
        }
        unsafe nghttp2_option_del(options)
        unsafe nghttp2_session_callbacks_del(callbacks)
        precondition(unsafe library != nil, "no memory for an HTTP/2 session")
        return unsafe library
    }

    /// The maximum size of a head that is sent, as nghttp2 estimates it: names, values and 12 bytes
    /// per field.
    ///
    /// Twice the largest head that this node can be configured to accept from an origin. A head
    /// beyond one frame continues in CONTINUATION frames of at most 16,384 bytes, which every peer
    /// accepts (RFC 9113 §4.2); buffers are allocated on demand.
    private static let sentHeadBytesMax = 2 * 1024 * 1024

    /// Calls `body` with the session that nghttp2 was given as user data.
    ///
    /// The session is not retained, because the caller of nghttp2 holds it.
    @inline(__always)
    private static func withSession(
        _ user: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> CInt
    ) -> CInt {
        guard let user = unsafe user else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
        return unsafe Unmanaged<HTTP2Session>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
    }

    private static func setCallbacks(_ callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) {
            _, frame, user in
            guard let frame = unsafe frame else { return 0 }
            return unsafe NGHTTP2Library.withSession(user) { session in
                unsafe session.headerBlockStarted(
                    frame.pointee.hd.stream_id, category: frame.pointee.headers.cat)
                return 0
            }
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, user in
            guard let frame = unsafe frame else { return 0 }
            return unsafe NGHTTP2Library.withSession(user) { session in
                let isTaken = unsafe session.fieldReceived(
                    frame.pointee.hd.stream_id,
                    UnsafeBufferPointer(start: name, count: nameCount),
                    UnsafeBufferPointer(start: value, count: valueCount))
                return isTaken ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
            }
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            _, _, _, _, _, _, _, _ in
            // nghttp2 would ignore the field, but the message is malformed (RFC 9113 §8.2.1).
            NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, id, bytes, count, user in
            unsafe NGHTTP2Library.withSession(user) { session in
                unsafe session.dataReceived(id, UnsafeBufferPointer(start: bytes, count: count))
                return 0
            }
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let frame = unsafe frame else { return 0 }
            return unsafe NGHTTP2Library.withSession(user) { session in
                unsafe session.dispatchFrame(frame)
                return 0
            }
        }
        unsafe setSendingCallbacks(callbacks)
    }

    private static func setSendingCallbacks(_ callbacks: OpaquePointer?) {
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
            guard let frame = unsafe frame else { return 0 }
            return unsafe NGHTTP2Library.withSession(user) { session in
                unsafe session.frameSent(frame)
                return 0
            }
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, error, user in
            guard let frame = unsafe frame else { return 0 }
            return unsafe NGHTTP2Library.withSession(user) { session in
                unsafe session.frameFailed(frame, error: error)
                return 0
            }
        }
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) {
            _, _, head, count, source, user in
            guard let head = unsafe head, let source = unsafe source?.pointee.ptr else {
                return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
            }
            let stream = unsafe Unmanaged<HTTP2Stream>.fromOpaque(source)
            return unsafe NGHTTP2Library.withSession(user) { session in
                unsafe stream._withUnsafeGuaranteedRef { stream in
                    unsafe session.appendDataFrame(
                        UnsafeBufferPointer(start: head, count: FrameHeader.bytesCount),
                        count, of: stream)
                }
            }
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, id, code, user in
            unsafe NGHTTP2Library.withSession(user) { session in
                session.removeClosedStream(id, HTTP2ErrorCode(rawValue: code))
                return 0
            }
        }
    }
}

extension HTTP2Session {
    /// Submits SETTINGS, the first frame of each end, and enlarges the connection's window.
    func submitSettings(_ entries: [(nghttp2_settings_id, Int)]) {
        var list = entries.map {
            nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: UInt32($0.1))
        }
        unsafe nghttp2_submit_settings(nghttp2Session, 0, &list, list.count)
        unsafe nghttp2_session_set_local_window_size(
            nghttp2Session, 0, 0, Int32(max(65535, settings.connectionWindowBytes)))
    }

    /// Passes on a frame that has arrived in full.
    fileprivate func dispatchFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = unsafe frame.pointee.hd
        let endsStream = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            unsafe headerBlockEnded(
                head.stream_id, category: frame.pointee.headers.cat, endsStream: endsStream)
        case NGHTTP2_DATA.rawValue:
            if endsStream { streamEnded(head.stream_id) }
        default: unsafe frameReceived(frame)
        }
    }
}

extension HTTP2ErrorCode {
    /// Creates the code for a fatal error of nghttp2.
    init(nghttp2Error error: Int32) {
        self =
            switch error {
            case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: .protocolError
            case NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue,
                NGHTTP2_ERR_CALLBACK_FAILURE.rawValue:
                .enhanceYourCalm
            default: .internalError
            }
    }
}
