import Ground

/// The connections between the nodes of an invalidation simulation.
///
/// Messages on one connection arrive in order or are lost with it; different connections are
/// independent.
struct SimulatedNetwork: Sendable {
    /// The connection between two nodes, in both directions.
    struct Link: Sendable {
        /// The number of the connection, unique within the simulation.
        var number: UInt64 = 0
        var isOpen = false
        /// The time of the last break; zero if there was none.
        var brokenAt = Instant.zero
    }

    private let count: Int
    /// The connections, indexed by lower * count + higher.
    private var links: [Link]
    /// The end of the block of each direction, indexed by from * count + to.
    private var blockedUntil: [Instant]
    /// The arrival of the last message of each direction, indexed likewise.
    private var lastArrival: [Instant]
    /// The delay of everything that a node receives, and the end of that time.
    private var lags: [(delay: Interval, until: Instant)]
    private var lastNumber: UInt64 = 0

    /// Creates a network of `count` unconnected nodes.
    init(count: Int) {
        self.count = count
        links = Array(repeating: Link(), count: count * count)
        blockedUntil = Array(repeating: .zero, count: count * count)
        lastArrival = blockedUntil
        lags = Array(repeating: (.zero, .zero), count: count)
    }

    // MARK: Connections

    /// Returns the connection between two nodes.
    func link(_ one: Int, _ other: Int) -> Link { links[place(one, other)] }

    /// Returns true if the two nodes are connected.
    func areConnected(_ one: Int, _ other: Int) -> Bool { link(one, other).isOpen }

    /// Returns true if the two nodes are connected with each other, or both with a third one.
    func areNeighbours(_ one: Int, _ other: Int) -> Bool {
        areConnected(one, other)
            || (0..<count).contains { areConnected(one, $0) && areConnected($0, other) }
    }

    /// Opens a connection and returns its number.
    mutating func open(_ one: Int, _ other: Int, at now: Instant) -> UInt64 {
        lastNumber += 1
        links[place(one, other)].number = lastNumber
        links[place(one, other)].isOpen = true
        lastArrival[one * count + other] = now
        lastArrival[other * count + one] = now
        return lastNumber
    }

    /// Closes a connection; returns false if it was not open.
    mutating func close(_ one: Int, _ other: Int, at now: Instant) -> Bool {
        guard areConnected(one, other) else { return false }
        links[place(one, other)].isOpen = false
        links[place(one, other)].brokenAt = now
        return true
    }

    /// Returns the index of the connection between two nodes in `links`.
    private func place(_ one: Int, _ other: Int) -> Int {
        min(one, other) * count + max(one, other)
    }

    // MARK: Delays

    /// Returns the delay of a message by blocks and lags.
    func delay(from: Int, to: Int, at now: Instant) -> Interval {
        let block = max(.zero, blockedUntil[from * count + to] - now)
        return lags[to].until > now ? block + lags[to].delay : block
    }

    /// Returns when a message arrives that would do so at `instant` alone: not before the one that
    /// was sent ahead of it.
    mutating func arrival(from: Int, to: Int, at instant: Instant) -> Instant {
        let way = from * count + to
        lastArrival[way] = max(instant, lastArrival[way])
        return lastArrival[way]
    }

    /// Delays everything that a node receives until `end`, in order.
    mutating func lag(_ index: Int, by delay: Interval, until end: Instant) {
        lags[index] = (delay, end)
    }

    // MARK: Blocks

    /// Returns true if traffic in this direction is blocked.
    func isBlocked(from: Int, to: Int, at now: Instant) -> Bool {
        blockedUntil[from * count + to] > now
    }

    /// Blocks one direction until `end`, unless it is blocked for longer.
    mutating func block(from: Int, to: Int, until end: Instant) {
        let way = from * count + to
        blockedUntil[way] = max(blockedUntil[way], end)
    }

    /// Blocks both directions until `end` exactly.
    mutating func setBlock(_ one: Int, _ other: Int, until end: Instant) {
        blockedUntil[one * count + other] = end
        blockedUntil[other * count + one] = end
    }

    /// Ends all blocks.
    mutating func unblockAll() {
        blockedUntil = Array(repeating: .zero, count: blockedUntil.count)
    }
}
