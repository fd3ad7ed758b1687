/// What an endpoint announces and how much it puts up with; one value for all its connections.
package struct HTTP2Settings: Hashable, Sendable {
    /// Streams that the peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS).
    package var concurrentStreamsMax: Int
    /// Bytes of a head as HPACK counts them (RFC 7541 §4.1).
    ///
    /// Counted are names, values and 32 for each field line. Announced as
    /// SETTINGS_MAX_HEADER_LIST_SIZE; a head above it is refused, and one four times as large ends
    /// the connection.
    package var headBytesMax: Int
    /// Field lines of a head, pseudo-header fields not counted.
    package var fieldsMax: Int
    /// Bytes of a body that the peer may send on one stream before they are consumed
    /// (SETTINGS_INITIAL_WINDOW_SIZE); less than 2³¹.
    package var streamWindowBytes: Int
    /// The same for all streams of a connection; at least 65,535, with which every connection
    /// begins.
    package var connectionWindowBytes: Int
    /// Bytes of the dynamic table that the peer's encoder may use (SETTINGS_HEADER_TABLE_SIZE).
    package var decoderTableBytesMax: Int
    /// Bytes of the dynamic table of this endpoint's encoder, if the peer allows as many.
    package var encoderTableBytesMax: Int
    /// CONTINUATION frames that may follow one HEADERS frame; nil: as many full ones as hold a head
    /// four times ``headBytesMax``, and 8 at least.
    package var continuationsMax: Int?
    /// Frames that may wait to be written, DATA not counted, while the peer reads nothing.
    package var queuedFramesMax: Int
    /// The budget of ``FloodGuard``, and what comes back of it each second.
    package var floodUnitsMax: Int
    package var floodUnitsPerSecond: Int

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

    /// For connections to origins: a stream whose bytes are not consumed must not stall the others,
    /// so the connection's window is much larger than a stream's.
    package static let originDefaults = HTTP2Settings(
        streamWindowBytes: 256 * 1024, connectionWindowBytes: 16 * 1024 * 1024)

    var continuationsAccepted: Int {
        continuationsMax
            ?? max(8, IncomingFieldSection.excessMax * headBytesMax / Self.frameBytesMax)
    }

    /// Bytes of a frame's payload that every endpoint takes, and this one at most (RFC 9113 §4.2).
    private static let frameBytesMax = 16_384
}
