import Ground
import NIOCore
import Platform
import Store

/// The output of a client connection, from its production until the socket has accepted it.
struct ConnectionOutput {
    /// Output that was not yet flushed.
    let writer = SocketWriter()
    /// Bytes written since the socket last had accepted everything.
    var queuedBytes = 0
    /// True if output was appended since the last flush.
    var hasUnflushed = false
    /// Detects a client that stops reading.
    var stall = WriteStall()
    /// Memory entries that own the bytes queued for the socket.
    private var retainedEntries: [MemoryEntry] = []

    /// Creates an empty output with capacity for `entriesCount` entries.
    init(entriesCount: Int = 0) {
        retainedEntries.reserveCapacity(entriesCount)
    }

    /// Adds a piece, which the next flush writes.
    @inline(__always)
    mutating func append(_ piece: ByteBuffer) {
        queuedBytes += piece.readableBytes
        hasUnflushed = true
        writer.append(piece)
    }

    /// Keeps a memory entry until the socket has accepted everything that is queued.
    @inline(__always)
    mutating func retain(_ entry: MemoryEntry) {
        retainedEntries.append(entry)
    }

    /// Releases the entries after the socket has accepted everything.
    mutating func drained() {
        retainedEntries.removeAll(keepingCapacity: true)
        queuedBytes = 0
    }

    /// Drops everything; to be called when the channel is closed.
    mutating func close() {
        writer.close()
        retainedEntries.removeAll()
    }

    /// Bytes that the socket has not accepted.
    func bufferedBytes(_ context: ChannelHandlerContext?) -> Int {
        context?.channel.queuedBytes ?? queuedBytes
    }

    /// Starts to watch a client that has not read everything after a flush; `limit` is
    /// `sendTimeout`.
    @inline(__always)
    mutating func watchStall(_ context: ChannelHandlerContext, _ limit: Interval) {
        guard queuedBytes > 0, !stall.isActive else { return }
        stall.begin(bufferedBytes(context), SystemClock.now(), limit)
    }

    /// Returns true if the client has read nothing for `limit`, which is `sendTimeout`.
    @inline(__always)
    mutating func hasStalled(
        _ context: ChannelHandlerContext?, _ now: Instant, _ limit: Interval
    ) -> Bool {
        stall.isActive && !stall.checkProgress(bufferedBytes(context), now, limit)
    }
}

/// Detection of a client that stops reading its response.
struct WriteStall {
    /// Bytes queued when `deadline` was set; `nil` if the socket has accepted everything.
    private var queuedBytes: Int?
    /// Instant by which the client must have read something.
    private var deadline = Instant.distantFuture

    /// True while bytes wait for the socket.
    var isActive: Bool { queuedBytes != nil }

    /// Starts the detection with `bytes` queued, of which the client must read some within `limit`.
    mutating func begin(_ bytes: Int, _ now: Instant, _ limit: Interval) {
        queuedBytes = bytes
        deadline = now + limit
    }

    /// Stops the detection, because the socket has accepted everything.
    mutating func end() {
        queuedBytes = nil
    }

    /// Returns false if the client has read nothing for `limit`; `bytes` are queued now, and a
    /// change of their number starts the time again.
    mutating func checkProgress(_ bytes: Int, _ now: Instant, _ limit: Interval) -> Bool {
        if bytes != queuedBytes { begin(bytes, now, limit) }
        return now < deadline
    }

    /// Shifts the deadline to the `sendTimeout` of new settings.
    mutating func reconfigure(_ settings: NodeSettings, after old: NodeSettings) {
        guard isActive else { return }
        deadline.shift(from: old.sendTimeout, to: settings.sendTimeout)
    }
}

extension Instant {
    /// Moves a deadline set with time limit `old` to where the limit `new` would have put it.
    mutating func shift(from old: Interval, to new: Interval) {
        self = self + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
