import CNgHTTP2
package import Ground

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
