import Ground
import HTTPRules
import NIOCore
import RawStructuredFieldValues

/// One stream of a connection: a request and its response.
///
/// Created by the session, and held by the delegate; operations on a closed stream do nothing. The
/// object is reused for a later stream if there are no other references when its stream closes.
/// Confined to the event loop of its session.
package final class HTTP2Stream {
    /// The stream's id, which is odd; 0 before the stream is opened.
    package internal(set) var id: Int32 = 0
    /// An object of the session's user; released when the stream closes.
    package var owner: AnyObject?
    /// The source of the queued bytes, for a user that keeps no state of its own; released when the
    /// stream closes.
    package var source: AnyObject?
    /// True once the last delegate call for the stream was made.
    package internal(set) var isClosed = true
    /// True once the peer has ended its half.
    package internal(set) var isRemoteEnded = false
    /// The number of bytes of the body written and not yet framed.
    package internal(set) var bytesQueued = 0

    /// True once the head of this end's message is submitted; on a server, that of the final
    /// response.
    var isHeadSubmitted = false
    /// True if nothing more will be written.
    package internal(set) var isEnding = false
    /// True once this end has submitted RST_STREAM.
    package internal(set) var isReset = false
    /// True once the delegate has received the head of the peer's message; on a client, that of the
    /// final response.
    package internal(set) var isHeadDelivered = false
    /// The limit that the head or the trailer section exceeded, so that it is dropped; `nil` for
    /// none, and once the delegate was told.
    package internal(set) var headError: RequestParseError?
    /// The stream's index in the session's list.
    var index = 0
    /// True while nghttp2 does not ask for bytes, because there were none, until `resume`.
    var isDeferred = false
    /// The field lines to send after the body.
    var trailers: [UInt8]?
    /// The number of bytes received and not yet consumed.
    var bytesUnconsumed = 0
    /// The stall of the stream's own window, while bytes are queued.
    var stall = WindowStall()
    /// The error to report instead of nghttp2's.
    var errorCodeOverride: HTTP2ErrorCode?
    @exclusivity(unchecked) private var queue: [ByteBuffer] = []
    /// The index of the first buffer that is not fully framed.
    @exclusivity(unchecked) private var queueStart = 0

    init() {}

    /// Resets the state for a new stream.
    func open() {
        id = 0
        isClosed = false
        isRemoteEnded = false
        isHeadSubmitted = false
        isEnding = false
        isReset = false
        isHeadDelivered = false
        headError = nil
        isDeferred = false
        trailers = nil
        bytesUnconsumed = 0
        stall.end()
        errorCodeOverride = nil
    }

    /// Marks the stream as closed, and releases its owner, its source and the queued bytes.
    func close() {
        isClosed = true
        owner = nil
        source = nil
        dropQueue()
    }

    /// Adds a buffer to the end of the queue, by reference.
    func append(_ body: ByteBuffer) {
        unsafe queue.append(body)
        bytesQueued += body.readableBytes
    }

    /// Drops all queued bytes; the session's count of them is not changed.
    func dropQueue() {
        unsafe queue.removeAll(keepingCapacity: queue.capacity <= 64)
        unsafe queueStart = 0
        bytesQueued = 0
        stall.end()
    }

    /// Moves the first `count` bytes of the queue, which has at least as many, to the end of
    /// `output`.
    func dequeue(_ count: Int, into output: inout FrameOutputBuffer) {
        bytesQueued -= count
        stall.recordProgress(count)
        var left = count
        while left > 0 {
            let readable = unsafe queue[queueStart].readableBytes
            if readable > left {
                if let slice = unsafe queue[queueStart].readSlice(length: left) {
                    output.append(slice)
                }
                return
            }
            left -= readable
            if readable > 0 { unsafe output.append(queue[queueStart]) }
            unsafe queueStart += 1
        }
        if bytesQueued == 0 {
            stall.end()
            unsafe queue.removeAll(keepingCapacity: queue.capacity <= 64)
            unsafe queueStart = 0
        } else if unsafe queueStart >= 32 {
            unsafe queue.removeFirst(queueStart)
            unsafe queueStart = 0
        }
    }
}

/// The duration for which a peer's window has blocked output: from the first check that finds it
/// used up until ``progressBytesMin`` bytes are framed (RFC 9113 §5.2).
///
/// A peer that opens its window by less at a time still stalls. A peer that opens it while another
/// window blocks is not charged: the bytes are framed before the window is used up again.
struct WindowStall: Hashable {
    /// The number of bytes framed that ends a stall.
    static let progressBytesMin = 1024

    /// The start of the stall; `nil` if there is none.
    private(set) var since: Instant?
    private var bytesFramed = 0

    /// Starts a stall because the window is used up; a stall in progress keeps its start.
    mutating func begin(_ now: Instant) {
        guard since == nil else { return }
        since = now
        bytesFramed = 0
    }

    /// Ends the stall, if there is one.
    mutating func end() {
        since = nil
    }

    /// Counts bytes that fitted into the window; ``progressBytesMin`` of them end the stall.
    @inline(__always)
    mutating func recordProgress(_ bytes: Int) {
        guard since != nil else { return }
        bytesFramed += bytes
        if bytesFramed >= Self.progressBytesMin { since = nil }
    }
}

/// The priority that a client requests for a response (RFC 9218 §4).
struct StreamPriority: Hashable {
    /// The urgency: 0 is the most urgent, 7 the least.
    var urgency: UInt32 = 3
    /// True if the response is useful in parts: streams of equal urgency then share the connection.
    var isIncremental = false

    /// Parses the value of the Priority field or of PRIORITY_UPDATE; `nil` if it is malformed.
    ///
    /// Members that are unknown or out of range are ignored.
    init?(_ value: ArraySlice<UInt8>) {
        var parser = StructuredFieldValueParser(value)
        guard let dictionary = try? parser.parseDictionaryFieldValue() else { return nil }
        if case .item(let item)? = dictionary["u"],
            case .integer(let urgency) = item.rfc9651BareItem,
            0...7 ~= urgency
        {
            self.urgency = UInt32(urgency)
        }
        if case .item(let item)? = dictionary["i"], case .bool(let flag) = item.rfc9651BareItem {
            isIncremental = flag
        }
    }
}

/// Priorities received for streams before their requests.
struct PendingPriorities {
    /// The maximum number of priorities kept; browsers send them for requests that are about to
    /// follow.
    private static let countMax = 32

    private var list: [(stream: Int32, priority: StreamPriority)] = []

    /// Sets the priority of a stream that is not open yet; ignored beyond ``countMax`` streams.
    mutating func set(_ stream: Int32, _ priority: StreamPriority) {
        list.removeAll { $0.stream == stream }
        if list.count < Self.countMax { list.append((stream, priority)) }
    }

    /// Removes and returns the priority of a stream that opens now; those of lower ids are dropped
    /// as obsolete.
    mutating func take(_ stream: Int32) -> StreamPriority? {
        guard !list.isEmpty else { return nil }
        let priority = list.first { $0.stream == stream }?.priority
        list.removeAll { $0.stream <= stream }
        return priority
    }
}

/// The most recently closed streams, which nghttp2 forgets.
///
/// Frames for them are errors if the peer ended or reset the stream, and ignored if this end reset
/// it (RFC 9113 §5.1).
struct ClosedStreams {
    /// How frames are handled that arrive for a stream that is not open.
    enum ClosedState {
        /// The peer may not know yet that the stream was reset or refused.
        case ignored
        /// The peer knew that the stream was closed.
        case ended
        /// The peer skipped the id; it counts as closed (RFC 9113 §5.1.1).
        case skipped
    }

    /// The highest id of a stream that the client has opened; 0 before the first.
    private(set) var last: Int32 = 0
    /// For each slot, the id times two, plus 1 if its stream ended; the slot is half the id modulo
    /// 256.
    private var entries = [UInt32](repeating: 0, count: 256)

    /// Records that the peer opened the stream `id`, which is above all earlier ones.
    mutating func streamOpened(_ id: Int32) {
        last = id
        entries[slot(id)] = UInt32(id) << 1
    }

    /// Records that the stream was closed by both ends, or reset by the peer.
    mutating func streamEnded(_ id: Int32) {
        guard entries[slot(id)] >> 1 == UInt32(id) else { return }
        entries[slot(id)] |= 1
    }

    /// Returns the state of a stream that is not open; `id` must not be above ``last``.
    func state(_ id: Int32) -> ClosedState {
        let mark = entries[slot(id)]
        if mark >> 1 == UInt32(id) { return mark & 1 == 1 ? .ended : .ignored }
        // Streams closed longer ago have been overwritten.
        return mark >> 1 > UInt32(id) ? .ignored : .skipped
    }

    /// Returns the index of the stream's slot, which it shares with others.
    private func slot(_ id: Int32) -> Int { Int(id >> 1) & 255 }
}
