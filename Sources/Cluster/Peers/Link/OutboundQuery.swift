/// The requester's state of a query to the peer.
///
/// The query is open from ASK until the responder's last frame, even after a cancellation: so both
/// ends agree on which streams are open at every point of the byte stream.
struct OutboundQuery: Sendable {
    private(set) var state = State.awaitingReply
    /// True once the requester has sent RESET; further frames are dropped up to the responder's
    /// last.
    var isCancelled = false
    /// All bytes granted to the responder, including the initial window.
    private(set) var grantedBytes: UInt64
    /// Body bytes received.
    private(set) var receivedBytes: UInt64 = 0
    /// Body bytes consumed of those received.
    private(set) var consumedBytes: UInt64 = 0
    /// Maximum bytes received and not yet consumed.
    private let window: UInt64

    /// The progress of the response.
    enum State: Hashable, Sendable {
        /// No response yet, or FETCHING only; a final response ends the query, HELD leads to
        /// ``receiving(size:)``.
        case awaitingReply
        /// HELD was received; DATA follows until END or RESET ends the query.
        ///
        /// `size` is the announced length of the body, if any.
        case receiving(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        window = UInt64(windowBytes)
        grantedBytes = window
    }

    /// Records a response; returns false if none is allowed in this state.
    mutating func replyReceived(_ response: PeerReply) -> Bool {
        guard state == .awaitingReply else { return false }
        if case .held(let entry) = response { state = .receiving(size: entry.facts.size) }
        return true
    }

    /// Records `count` body bytes.
    ///
    /// - Throws: The fault, if they exceed the grant or the announced length, or no body is
    ///   expected.
    mutating func dataReceived(_ count: Int, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .unexpectedFrame(.data) }
        let sum = receivedBytes + UInt64(count)
        guard sum <= grantedBytes else { throw .creditExceeded(stream) }
        guard sum <= size ?? .max else { throw .sizeMismatch(stream) }
        receivedBytes = sum
    }

    /// Checks the end of the body against the bytes received and the announced length.
    ///
    /// - Throws: The fault, if they differ or no body is expected.
    func endReceived(_ end: StreamEnd, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .unexpectedFrame(.end) }
        guard end.size == receivedBytes, end.size == size ?? receivedBytes else {
            throw .sizeMismatch(stream)
        }
    }

    /// Records that `count` bytes were consumed; returns the bytes to grant now, 0 for none.
    ///
    /// A grant is at least a quarter of the window, and none is made once the whole body is
    /// granted.
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
