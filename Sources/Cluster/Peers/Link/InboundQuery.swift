/// A question of the other side, and what is said to it.
struct InboundQuery: Sendable {
    private(set) var state = State.awaitingReply
    /// Bytes that may be sent yet.
    private var credit: Int
    /// Bytes that the shell has ready.
    private var readyBytes = 0
    /// Bytes that were given to be sent.
    private var sentBytes: UInt64 = 0
    /// The shell has no more of the body.
    private var isBodyComplete = false
    /// What is said behind the body.
    private var trailers: [UInt8] = []
    /// It stands in the line of streams that take turns.
    var isScheduled = false

    /// What was said so far.
    enum State: Hashable, Sendable {
        /// Nothing, or FETCHING; a final answer ends it, HELD leads to ``sending(size:)``.
        case awaitingReply
        /// HELD; DATA follows, then END or RESET, which end it. The size of the body, if it was
        /// said.
        case sending(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        credit = Int(windowBytes)
    }

    /// True if a turn would send something.
    var hasSendableBytes: Bool { readyBytes > 0 && credit > 0 }

    mutating func beginBody(_ entry: PeerEntry) {
        state = .sending(size: entry.facts.size)
    }

    /// Takes in a grant; false if it is too much.
    mutating func addCredit(_ count: UInt32) -> Bool {
        guard Int(count) <= PeerProtocol.windowBytesMax - credit else { return false }
        credit += Int(count)
        return true
    }

    /// The shell has so many bytes more; false if they are more than the answer said.
    mutating func addReadyBytes(_ count: Int) -> Bool {
        readyBytes += count
        guard case .sending(let size) = state else { return false }
        return sentBytes + UInt64(readyBytes) <= size ?? .max
    }

    /// The shell has no more.
    mutating func completeBody(trailers: [UInt8]) {
        isBodyComplete = true
        self.trailers = trailers
    }

    /// Bytes to be sent now, at most `bytesMax`.
    mutating func takeSendableBytes(bytesMax: Int) -> Int {
        let count = min(readyBytes, credit, bytesMax)
        readyBytes -= count
        credit -= count
        sentBytes += UInt64(count)
        return count
    }

    /// What is to be said when everything that was ready is sent; nil if that is not yet so.
    var completion: Completion? {
        guard isBodyComplete, readyBytes == 0, case .sending(let size) = state else { return nil }
        guard sentBytes == size ?? sentBytes else { return .truncated }
        return .complete(StreamEnd(size: sentBytes, trailers: trailers))
    }

    enum Completion {
        case complete(StreamEnd)
        /// Fewer bytes than the answer said.
        case truncated
    }
}
