/// The field section being received: its stream, its size and, for a trailer section, its lines.
struct IncomingFieldSection: ~Copyable {
    /// The result of counting a line against the limits.
    enum LimitCheck {
        case withinLimits
        /// Beyond a limit: the line is dropped, and the stream's ``HTTP2Stream/headError`` is set.
        case limitExceeded
        /// So far beyond the limit that the connection must end.
        case hardLimitExceeded
    }

    /// The multiple of the limit at which a head ends the connection.
    ///
    /// Up to there its entries of the dynamic table are kept in sync, so that the connection can
    /// continue. A line above 64 KiB ends it earlier, because nghttp2 does not accept one.
    static let excessMax = 8

    private(set) var isTrailers = false
    private var stream: HTTP2Stream?
    /// The size in bytes as HPACK counts it (RFC 7541 §4.1).
    private var bytes = 0
    private var lines = 0
    private var trailers = ScratchBuffer(capacity: 256)
    private var trailersStream: HTTP2Stream?

    /// Starts a head or, with `isTrailers`, a trailer section; discards the one before.
    mutating func begin(_ stream: HTTP2Stream, isTrailers: Bool) {
        self.stream = stream
        self.isTrailers = isTrailers
        bytes = 0
        lines = 0
        trailers.removeAll()
        trailersStream = isTrailers ? stream : nil
    }

    /// Counts one line against the limits; the first line beyond one sets the stream's
    /// ``HTTP2Stream/headError``.
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

    /// Appends a field line of the trailer section.
    mutating func appendTrailer(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) {
        unsafe trailers.append(name)
        trailers.append(": ")
        unsafe trailers.append(value)
        trailers.append("\r\n")
    }

    /// Ends the section, and returns its stream unless that has been closed.
    mutating func end() -> HTTP2Stream? {
        defer { stream = nil }
        return stream
    }

    /// Drops the section and the trailers of a stream that has closed.
    mutating func streamClosed(_ closed: HTTP2Stream) {
        if stream === closed { stream = nil }
        if trailersStream === closed { trailersStream = nil }
    }

    /// Returns the lines of the last trailer section; none if it belongs to another stream.
    func trailers(of stream: HTTP2Stream) -> UnsafeBufferPointer<UInt8> {
        unsafe trailersStream === stream
            ? trailers.bytes : UnsafeBufferPointer(start: nil, count: 0)
    }
}
