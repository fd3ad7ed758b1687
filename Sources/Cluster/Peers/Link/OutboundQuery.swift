/// A question of this side, and what has come to it.
///
/// It is open from ASK until the answerer's last frame, also after it was cancelled: so both ends
/// agree on which streams are open, in the order of the bytes.
struct OutboundQuery: Sendable {
    private(set) var state = State.awaitingReply
    /// The asker wants it no more: RESET is sent, and what comes is dropped, up to the answerer's
    /// last frame.
    var isCancelled = false
    /// Bytes that the answerer may send in all; the first window included.
    private(set) var grantedBytes: UInt64
    /// Bytes that came.
    private(set) var receivedBytes: UInt64 = 0
    /// Bytes that were taken from those that came.
    private(set) var consumedBytes: UInt64 = 0
    /// Bytes that may come and not be taken.
    private let window: UInt64

    /// What came so far.
    enum State: Hashable, Sendable {
        /// Nothing, or FETCHING; a final answer ends it, HELD leads to ``receiving(size:)``.
        case awaitingReply
        /// HELD; DATA, then END or RESET, which end it. The size of the body, if it was said.
        case receiving(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        window = UInt64(windowBytes)
        grantedBytes = window
    }

    /// Takes in an answer; false if it may not come now.
    mutating func replyReceived(_ response: PeerReply) -> Bool {
        guard state == .awaitingReply else { return false }
        if case .held(let entry) = response { state = .receiving(size: entry.facts.size) }
        return true
    }

    /// Takes in so many bytes of a body.
    mutating func dataReceived(_ count: Int, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .unexpectedFrame(.data) }
        let sum = receivedBytes + UInt64(count)
        guard sum <= grantedBytes else { throw .creditExceeded(stream) }
        guard sum <= size ?? .max else { throw .sizeMismatch(stream) }
        receivedBytes = sum
    }

    /// Takes in the end of the body.
    func endReceived(_ end: StreamEnd, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .unexpectedFrame(.end) }
        guard end.size == receivedBytes, end.size == size ?? receivedBytes else {
            throw .sizeMismatch(stream)
        }
    }

    /// Notes that bytes were taken; how many are to be granted now, 0 for none.
    ///
    /// Granted at once is at least a quarter of the window, and nothing that the body does not
    /// need.
    mutating func bytesConsumed(_ count: Int) -> UInt32 {
        consumedBytes = min(consumedBytes + UInt64(count), receivedBytes)
        let target = consumedBytes + window
        guard case .receiving(let size) = state, !isCancelled, grantedBytes < size ?? .max,
            target - grantedBytes >= window / 4
        else { return 0 }
        defer { grantedBytes = target }
        return UInt32(target - grantedBytes)
    }
}
