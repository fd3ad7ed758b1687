/// A question of this side, and what has come to it.
///
/// It is open from ASK until the answerer's last frame, also after it was cancelled: so both ends
/// agree on which streams are open, in the order of the bytes.
struct AskedStream: Sendable {
    private(set) var state = State.waiting
    /// The asker wants it no more: RESET is sent, and what comes is dropped, up to the answerer's
    /// last frame.
    var isCancelled = false
    /// Bytes that the answerer may send in all; the first window included.
    private(set) var granted: UInt64
    /// Bytes that came.
    private(set) var received: UInt64 = 0
    /// Bytes that were taken from those that came.
    private(set) var consumed: UInt64 = 0
    /// Bytes that may come and not be taken.
    private let window: UInt64

    /// What came so far.
    enum State: Hashable, Sendable {
        /// Nothing, or FETCHING; a final answer ends it, HELD leads to ``receiving(size:)``.
        case waiting
        /// HELD; DATA, then END or RESET, which end it. The size of the body, if it was said.
        case receiving(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        window = UInt64(windowBytes)
        granted = window
    }

    /// Takes in an answer; false if it may not come now.
    mutating func answered(_ answer: PeerAnswer) -> Bool {
        guard state == .waiting else { return false }
        if case .held(let entry) = answer { state = .receiving(size: entry.facts.size) }
        return true
    }

    /// Takes in so many bytes of a body.
    mutating func dataArrived(_ count: Int, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .outOfPlace(.data) }
        let sum = received + UInt64(count)
        guard sum <= granted else { throw .beyondCredit(stream) }
        guard sum <= size ?? .max else { throw .sizeDiffers(stream) }
        received = sum
    }

    /// Takes in the end of the body.
    func ended(_ end: StreamEnd, on stream: UInt32) throws(PeerFault) {
        guard case .receiving(let size) = state else { throw .outOfPlace(.end) }
        guard end.size == received, end.size == size ?? received else {
            throw .sizeDiffers(stream)
        }
    }

    /// Notes that bytes were taken; how many are to be granted now, 0 for none.
    ///
    /// Granted at once is at least a quarter of the window, and nothing that the body does not
    /// need.
    mutating func taken(_ count: Int) -> UInt32 {
        consumed = min(consumed + UInt64(count), received)
        let target = consumed + window
        guard case .receiving(let size) = state, !isCancelled, granted < size ?? .max,
            target - granted >= window / 4
        else { return 0 }
        defer { granted = target }
        return UInt32(target - granted)
    }
}
