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
