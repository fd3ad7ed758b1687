/// A question of the other side, and what is said to it.
struct AnsweringStream: Sendable {
    private(set) var state = State.owed
    /// Bytes that may be sent yet.
    private var credit: Int
    /// Bytes that the shell has ready.
    private var ready = 0
    /// Bytes that were given to be sent.
    private var sent: UInt64 = 0
    /// The shell has no more of the body.
    private var isWhole = false
    /// What is said behind the body.
    private var trailers: [UInt8] = []
    /// It stands in the line of streams that take turns.
    var isInLine = false

    /// What was said so far.
    enum State: Hashable, Sendable {
        /// Nothing, or FETCHING; a final answer ends it, HELD leads to ``sending(size:)``.
        case owed
        /// HELD; DATA follows, then END or RESET, which end it. The size of the body, if it was
        /// said.
        case sending(size: UInt64?)
    }

    init(windowBytes: UInt32) {
        credit = Int(windowBytes)
    }

    /// True if a turn would send something.
    var hasTurn: Bool { ready > 0 && credit > 0 }

    mutating func held(_ entry: HeldEntry) {
        state = .sending(size: entry.facts.size)
    }

    /// Takes in a grant; false if it is too much.
    mutating func granted(_ count: UInt32) -> Bool {
        guard Int(count) <= PeerProtocol.windowBytesMax - credit else { return false }
        credit += Int(count)
        return true
    }

    /// The shell has so many bytes more; false if they are more than the answer said.
    mutating func becameReady(_ count: Int) -> Bool {
        ready += count
        guard case .sending(let size) = state else { return false }
        return sent + UInt64(ready) <= size ?? .max
    }

    /// The shell has no more.
    mutating func becameWhole(trailers: [UInt8]) {
        isWhole = true
        self.trailers = trailers
    }

    /// Bytes to be sent now, at most `bytesMax`.
    mutating func takeTurn(bytesMax: Int) -> Int {
        let count = min(ready, credit, bytesMax)
        ready -= count
        credit -= count
        sent += UInt64(count)
        return count
    }

    /// What is to be said when everything that was ready is sent; nil if that is not yet so.
    var ending: Ending? {
        guard isWhole, ready == 0, case .sending(let size) = state else { return nil }
        guard sent == size ?? sent else { return .broken }
        return .whole(StreamEnd(size: sent, trailers: trailers))
    }

    enum Ending {
        case whole(StreamEnd)
        /// Fewer bytes than the answer said.
        case broken
    }
}
