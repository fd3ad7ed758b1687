import Ground
import HTTPRules
import NIOCore

/// One stream of a connection: a request and its answer.
///
/// Made by the session and held by whoever answers; verbs on a closed stream do nothing. The
/// object is used again for a later stream if nobody holds it once its stream has closed.
package final class HTTP2Stream {
    /// Odd; 0 before the stream is opened.
    package internal(set) var id: Int32 = 0
    /// Whatever the user of the session wants to find again; dropped when the stream closes.
    package var owner: AnyObject?
    /// What the bytes in the queue are taken from, for a user that leaves the stream to itself;
    /// dropped when the stream closes.
    package var source: AnyObject?
    /// True once the last call for the stream was made.
    package internal(set) var isClosed = true
    /// True once the peer has ended its half.
    package internal(set) var isRemoteEnded = false
    /// Bytes of the body that were written and are not framed yet.
    package internal(set) var bytesQueued = 0

    /// The head of this end's message was submitted; on the server that of the final answer.
    var isHeadSubmitted = false
    /// Nothing more will be written.
    package internal(set) var isEnding = false
    /// RST_STREAM was submitted here.
    package internal(set) var isReset = false
    /// The delegate has had the head of the peer's message.
    package internal(set) var isHeadDelivered = false
    /// Its head was not kept, because it passed a limit.
    package internal(set) var headError: RequestParseError?
    /// Where the session keeps it.
    var index = 0
    /// DATA waits for `resume`.
    var isDeferred = false
    /// Field lines to be sent after the body.
    var trailers: [UInt8]?
    /// Bytes received and not yet consumed.
    var bytesUnconsumed = 0
    /// Of the stream's own window, while bytes are queued.
    var stall = WindowStall()
    /// Why it fails, if nghttp2 tells another code.
    var errorCodeOverride: HTTP2ErrorCode?
    @exclusivity(unchecked) private var queue: [ByteBuffer] = []
    /// Index of the first buffer that is not framed in full.
    @exclusivity(unchecked) private var queueStart = 0

    init() {}

    /// Begins the life of a stream.
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

    /// Ends it.
    func close() {
        isClosed = true
        owner = nil
        source = nil
        dropQueue()
    }

    func append(_ body: ByteBuffer) {
        unsafe queue.append(body)
        bytesQueued += body.readableBytes
    }

    func dropQueue() {
        unsafe queue.removeAll(keepingCapacity: queue.capacity <= 64)
        unsafe queueStart = 0
        bytesQueued = 0
        stall.end()
    }

    /// Moves the first `count` bytes of the queue, which holds as many, to the end of `output`.
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

/// How long a window of the peer's has been in the way: from the first look that found it used up
/// until ``progressBytesMin`` bytes were framed (RFC 9113 §5.2).
///
/// A peer that opens its window by less at a time is stalling still, and one that opens it while
/// another window is in the way loses nothing: the bytes are framed before it is used up again.
struct WindowStall: Hashable {
    /// Below this many bytes framed a stall goes on.
    static let progressBytesMin = 1024

    /// Nil while there is no stall.
    private(set) var since: Instant?
    private var bytesFramed = 0

    /// The window is used up; a stall that goes on keeps its beginning.
    mutating func begin(_ now: Instant) {
        guard since == nil else { return }
        since = now
        bytesFramed = 0
    }

    mutating func end() {
        since = nil
    }

    /// Takes note of bytes that the window took.
    @inline(__always)
    mutating func recordProgress(_ bytes: Int) {
        guard since != nil else { return }
        bytesFramed += bytes
        if bytesFramed >= Self.progressBytesMin { since = nil }
    }
}

/// What a client wants to have first (RFC 9218 §4).
struct StreamPriority: Hashable {
    /// 0 is the most urgent, 7 the least.
    var urgency: UInt32 = 3
    /// The answer is of use in parts: streams of one urgency share the connection.
    var isIncremental = false

    /// The priority that the value of the field or of PRIORITY_UPDATE says; nil if it is malformed.
    ///
    /// Members that are unknown or out of range are as if they were not there.
    init?(_ value: Span<UInt8>) {
        guard let dictionary = StructuredDictionary(value) else { return nil }
        if case .integer(let urgency)? = dictionary["u"]?.bareItem, 0...7 ~= urgency {
            self.urgency = UInt32(urgency)
        }
        if case .boolean(let flag)? = dictionary["i"]?.bareItem { isIncremental = flag }
    }
}

/// Priorities that came for streams before their requests.
struct PendingPriorities {
    /// A browser sends them for what it is about to ask for; more than this is not kept.
    private static let countMax = 32

    private var list: [(stream: Int32, priority: StreamPriority)] = []

    mutating func set(_ stream: Int32, _ priority: StreamPriority) {
        list.removeAll { $0.stream == stream }
        if list.count < Self.countMax { list.append((stream, priority)) }
    }

    /// That of a stream which begins now; those of lower ids can be of no use any more.
    mutating func take(_ stream: Int32) -> StreamPriority? {
        guard !list.isEmpty else { return nil }
        let priority = list.first { $0.stream == stream }?.priority
        list.removeAll { $0.stream <= stream }
        return priority
    }
}

/// The streams that were closed last, which nghttp2 forgets: frames for them are errors if the peer
/// ended or reset the stream, and ignored if this end reset it (RFC 9113 §5.1).
struct ClosedStreams {
    enum ClosedState {
        /// The peer may not know yet that the stream was reset, refused or ignored.
        case ignored
        /// The peer knew that the stream was closed.
        case ended
        /// The peer skipped the id; it counts as closed (RFC 9113 §5.1.1).
        case skipped
    }

    /// The highest id that the peer has used.
    private(set) var last: Int32 = 0
    /// Each id doubled, plus 1 if its stream ended; by half the id, modulo the count.
    private var entries = [UInt32](repeating: 0, count: 256)

    /// The peer used `id`, which is above all before.
    mutating func streamOpened(_ id: Int32) {
        last = id
        entries[slot(id)] = UInt32(id) << 1
    }

    /// The stream was closed by both ends, or reset by the peer.
    mutating func streamEnded(_ id: Int32) {
        guard entries[slot(id)] >> 1 == UInt32(id) else { return }
        entries[slot(id)] |= 1
    }

    /// What is known of `id`, which is not above ``last`` and whose stream is not open.
    func state(_ id: Int32) -> ClosedState {
        let mark = entries[slot(id)]
        if mark >> 1 == UInt32(id) { return mark & 1 == 1 ? .ended : .ignored }
        // Of streams so long ago nothing is known any more.
        return mark >> 1 > UInt32(id) ? .ignored : .skipped
    }

    private func slot(_ id: Int32) -> Int { Int(id >> 1) & 255 }
}
