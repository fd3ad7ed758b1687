/// The responder's state of a query from the peer.
struct InboundQuery: Sendable {
    private(set) var state = State.awaitingReply
    /// Body bytes that may still be sent.
    private var credit: Int
    /// Body bytes that the shell has ready.
    private var readyBytes = 0
    /// Body bytes passed to the shell for sending.
    private var sentBytes: UInt64 = 0
    /// True once the shell has announced the end of the body.
    private var isBodyComplete = false
    /// The trailer section, sent after the body.
    private var trailers: [UInt8] = []
    /// True while the stream is in the round-robin queue.
    var isScheduled = false

    /// The progress of the response.
    enum State: Hashable, Sendable {
        /// No response yet, or FETCHING only; a final response ends the query, HELD leads to
        /// ``sending(size:)``.
        case awaitingReply
        /// HELD was sent; DATA follows until END or RESET ends the query.
        ///
        /// `size` is the announced length of the body, if any.
        case sending(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        credit = Int(windowBytes)
    }

    /// True if a turn would send something.
    var hasSendableBytes: Bool { readyBytes > 0 && credit > 0 }

    /// Begins the body of `entry` after HELD was sent.
    mutating func beginBody(_ entry: PeerEntry) {
        state = .sending(size: entry.facts.size)
    }

    /// Adds a grant; returns false if the total would exceed the maximum.
    mutating func addCredit(_ count: UInt32) -> Bool {
        guard Int(count) <= PeerProtocol.windowBytesMax - credit else { return false }
        credit += Int(count)
        return true
    }

    /// Adds `count` bytes that the shell has ready; returns false if they exceed the announced
    /// length, or no body has begun.
    mutating func addReadyBytes(_ count: Int) -> Bool {
        readyBytes += count
        guard case .sending(let size) = state else { return false }
        return sentBytes + UInt64(readyBytes) <= size ?? .max
    }

    /// Records that the body has no further bytes.
    mutating func completeBody(trailers: [UInt8]) {
        isBodyComplete = true
        self.trailers = trailers
    }

    /// Returns the number of bytes to send now, at most `bytesMax`, and deducts them.
    mutating func takeSendableBytes(bytesMax: Int) -> Int {
        let count = min(readyBytes, credit, bytesMax)
        readyBytes -= count
        credit -= count
        sentBytes += UInt64(count)
        return count
    }

    /// The end to send after all ready bytes were sent; `nil` before HELD, or if there are more to
    /// come.
    var completion: Completion? {
        guard isBodyComplete, readyBytes == 0, case .sending(let size) = state else { return nil }
        guard sentBytes == size ?? sentBytes else { return .truncated }
        return .complete(StreamEnd(size: sentBytes, trailers: trailers))
    }

    /// The end of a body.
    enum Completion {
        case complete(StreamEnd)
        /// The body is shorter than announced.
        case truncated
    }
}
