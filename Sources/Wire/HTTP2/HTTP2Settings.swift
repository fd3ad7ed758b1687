/// The settings that an endpoint announces, and its limits; one value for all its connections.
package struct HTTP2Settings: Hashable, Sendable {
    /// The maximum number of streams that a client may have open: announced by a server as
    /// SETTINGS_MAX_CONCURRENT_STREAMS, and observed by a client whatever its server allows.
    package var concurrentStreamsMax: Int
    /// The maximum size of a head in bytes as HPACK counts it (RFC 7541 §4.1): names, values and 32
    /// per field line.
    ///
    /// Announced as SETTINGS_MAX_HEADER_LIST_SIZE; a larger head is refused, and one more than
    /// eight times as large ends the connection.
    package var headBytesMax: Int
    /// The maximum number of field lines of a head, without pseudo-header fields.
    package var fieldsMax: Int
    /// The number of bytes of a body that the peer may send on a stream before they are consumed
    /// (SETTINGS_INITIAL_WINDOW_SIZE); less than 2³¹.
    package var streamWindowBytes: Int
    /// The number of bytes that the peer may send on all streams together before they are consumed;
    /// at least 65,535, the initial value of every connection.
    package var connectionWindowBytes: Int
    /// The maximum size in bytes of the dynamic table of the peer's encoder
    /// (SETTINGS_HEADER_TABLE_SIZE); a client does not announce it, so that 4096 applies.
    package var decoderTableBytesMax: Int
    /// The maximum size in bytes of the dynamic table of this endpoint's encoder; the peer may
    /// lower it.
    package var encoderTableBytesMax: Int
    /// The maximum number of CONTINUATION frames after one HEADERS frame.
    ///
    /// `nil` allows as many full ones as hold a head of eight times ``headBytesMax``, and at least
    /// 8.
    package var continuationsMax: Int?
    /// The maximum number of frames, without DATA, that may be queued while the peer does not read.
    package var queuedFramesMax: Int
    /// The budget of ``FloodGuard``.
    package var floodUnitsMax: Int
    /// The units of that budget restored per second.
    package var floodUnitsPerSecond: Int

    /// Creates settings; the defaults suit connections from clients.
    package init(
        concurrentStreamsMax: Int = 128, headBytesMax: Int = 32 * 1024, fieldsMax: Int = 100,
        streamWindowBytes: Int = 64 * 1024 - 1, connectionWindowBytes: Int = 1024 * 1024,
        decoderTableBytesMax: Int = 4096, encoderTableBytesMax: Int = 4096,
        continuationsMax: Int? = nil, queuedFramesMax: Int = 512,
        floodUnitsMax: Int = 2000, floodUnitsPerSecond: Int = 200
    ) {
        self.concurrentStreamsMax = concurrentStreamsMax
        self.headBytesMax = headBytesMax
        self.fieldsMax = fieldsMax
        self.streamWindowBytes = streamWindowBytes
        self.connectionWindowBytes = connectionWindowBytes
        self.decoderTableBytesMax = decoderTableBytesMax
        self.encoderTableBytesMax = encoderTableBytesMax
        self.continuationsMax = continuationsMax
        self.queuedFramesMax = queuedFramesMax
        self.floodUnitsMax = floodUnitsMax
        self.floodUnitsPerSecond = floodUnitsPerSecond
    }

    /// The settings for connections to origins.
    ///
    /// A stream whose bytes are not consumed must not stall the others, so the connection's window
    /// is much larger than a stream's.
    package static let originDefaults = HTTP2Settings(
        streamWindowBytes: 256 * 1024, connectionWindowBytes: 16 * 1024 * 1024)

    /// The value of ``continuationsMax``, or its default.
    var continuationsAccepted: Int {
        continuationsMax
            ?? max(8, IncomingFieldSection.excessMax * headBytesMax / Self.frameBytesMax)
    }

    /// The payload in bytes that every endpoint accepts, and the maximum that this one does (RFC
    /// 9113 §4.2).
    private static let frameBytesMax = 16_384
}
