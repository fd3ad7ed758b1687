/// The field section that is being read: whose it is, how large it has become, and its lines if it
/// is a trailer section.
struct IncomingFieldSection: ~Copyable {
    enum LimitCheck {
        case withinLimits
        /// Past a limit: the line is not kept, and the stream says why.
        case limitExceeded
        /// So far past the limit that the connection is to be ended.
        case hardLimitExceeded
    }

    /// How many times the limit a head may become before it ends the connection.
    ///
    /// Up to there its table entries are kept in step, so that the connection can go on. A line
    /// above 64 KiB ends it before: nghttp2 reads none.
    static let excessMax = 8

    private(set) var isTrailers = false
    private var stream: HTTP2Stream?
    /// As HPACK counts them (RFC 7541 §4.1).
    private var bytes = 0
    private var lines = 0
    private var trailers = ScratchBuffer(capacity: 256)
    private var trailersStream: HTTP2Stream?

    mutating func begin(_ stream: HTTP2Stream, isTrailers: Bool) {
        self.stream = stream
        self.isTrailers = isTrailers
        bytes = 0
        lines = 0
        trailers.removeAll()
        trailersStream = isTrailers ? stream : nil
    }

    /// Counts one line against the limits.
    @inline(__always)
    mutating func recordLine(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>,
        _ settings: HTTP2Settings
    ) -> LimitCheck {
        bytes += name.count + value.count + 32
        if unsafe name.first != Byte.colon { lines += 1 }
        if bytes <= settings.headBytesMax, lines <= settings.fieldsMax { return .withinLimits }
        if bytes > Self.excessMax * settings.headBytesMax { return .hardLimitExceeded }
        if let stream, stream.headError == nil {
            stream.headError =
                bytes > settings.headBytesMax
                ? .headTooLarge(bytesMax: settings.headBytesMax)
                : .tooManyFields(fieldsMax: settings.fieldsMax)
        }
        return .limitExceeded
    }

    mutating func appendTrailer(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) {
        unsafe trailers.append(name)
        trailers.append(": ")
        unsafe trailers.append(value)
        trailers.append("\r\n")
    }

    /// Ends the section; the stream whose it is, unless that has been closed.
    mutating func end() -> HTTP2Stream? {
        defer { stream = nil }
        return stream
    }

    mutating func streamClosed(_ closed: HTTP2Stream) {
        if stream === closed { stream = nil }
        if trailersStream === closed { trailersStream = nil }
    }

    /// The lines of the trailer section last read, if it is that of `stream`.
    func trailers(of stream: HTTP2Stream) -> UnsafeBufferPointer<UInt8> {
        unsafe trailersStream === stream
            ? trailers.bytes : UnsafeBufferPointer(start: nil, count: 0)
    }
}
