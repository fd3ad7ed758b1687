import Ground

/// The spreading of changed member records through the cluster.
///
/// A member that observes a change pushes the record to every member in an `updates` message. Every
/// member that receives a change repeats it a number of times on its pings, acks and ping requests
/// (SWIM §4.1, infection), which reaches the members that the push missed. So `updates` are always
/// first-hand and piggybacked records are second-hand; this distinguishes accusers from members
/// that only repeat an accusation.
///
/// When many members observe the same change at once, for example when all connections of a member
/// break, each waits for a random time and cancels its push if it receives another's before.
struct Dissemination: Sendable {
    private let settings: MembershipSettings
    /// How often the record of each of these members was piggybacked.
    private var repeatCounts = SortedTable<NodeID, Int>()
    /// When the record of each of these members is to be pushed.
    private var pushes = SortedTable<NodeID, Instant>()

    init(settings: MembershipSettings) {
        self.settings = settings
    }

    /// When the next push is due; `nil` if none is.
    var nextPush: Instant? { pushes.values.min() }

    /// Piggybacks the record of `id` as often as a new change, however often it was piggybacked
    /// before.
    mutating func restart(_ id: NodeID) {
        repeatCounts[id] = 0
    }

    /// Stops spreading the record of `id`.
    mutating func remove(_ id: NodeID) {
        repeatCounts[id] = nil
        pushes[id] = nil
    }

    /// Schedules a push of the record of `id`, cancelled if another member pushes first.
    ///
    /// The random delay grows with the number of live `members`.
    mutating func schedulePush(_ id: NodeID, members: Int, _ turn: inout StepContext) {
        let spread = min(settings.pushDelayMax, .milliseconds(Int64(members)))
        let instant = turn.now + turn.jitter(upTo: spread)
        pushes[id] = pushes[id].map { min($0, instant) } ?? instant
    }

    /// Cancels the push of a record that another member has pushed.
    mutating func cancelPush(_ id: NodeID) {
        pushes[id] = nil
    }

    /// Returns the members whose records are to be pushed now, and removes them.
    mutating func takePushes(at now: Instant) -> [NodeID] {
        let due = zip(pushes.keys, pushes.values).filter { $0.1 <= now }.map(\.0)
        for id in due { pushes[id] = nil }
        return due
    }

    /// Returns the members whose records are in the next message, the least repeated first, and
    /// counts the repetition.
    ///
    /// Each record is piggybacked a number of times that grows with the logarithm of the number of
    /// live `members`; then it is dropped.
    mutating func takePiggyback(members: Int) -> [NodeID] {
        guard !repeatCounts.isEmpty else { return [] }
        let digits = members < 10 ? 1 : members < 100 ? 2 : 3
        let timesMax = settings.retransmitMultiplier * digits
        let order = repeatCounts.keys.indices.sorted { left, right in
            (repeatCounts.values[left], left) < (repeatCounts.values[right], right)
        }
        let chosen = order.prefix(settings.piggybackMax).map { repeatCounts.keys[$0] }
        for id in chosen {
            let times = (repeatCounts[id] ?? 0) + 1
            repeatCounts[id] = times < timesMax ? times : nil
        }
        return chosen
    }
}

/// The exchange of tables of all members, which repairs what pushes and piggybacked records missed.
struct TableExchange: Sendable {
    /// When this node next exchanges tables with a random peer.
    private(set) var nextExchangeAt: Instant
    /// The earliest time of the next table request: when many connections open at once, one table
    /// suffices.
    private(set) var nextRequestAt: Instant
    /// True once a member has sent its table.
    private(set) var hasReceived = false
    private let settings: MembershipSettings

    init(settings: MembershipSettings, at now: Instant) {
        self.settings = settings
        nextExchangeAt = now + settings.exchangeInterval
        nextRequestAt = now
    }

    /// Records that a member has sent its table.
    mutating func received() { hasReceived = true }

    /// Records that this node has requested a table, which delays the next request once one was
    /// received.
    mutating func requested(at now: Instant) {
        if hasReceived { nextRequestAt = now + settings.tableRequestInterval }
    }

    /// Returns true if an exchange is due, and schedules the next one.
    ///
    /// The interval grows with the number of live `members`, since tables are longer and other
    /// nodes exchange too.
    mutating func takeDue(members: Int, _ turn: inout StepContext) -> Bool {
        guard nextExchangeAt <= turn.now else { return false }
        var interval = settings.exchangeInterval
        var count = members
        while count > 32 {
            interval = interval + settings.exchangeInterval
            count /= 2
        }
        nextExchangeAt = turn.now + interval + turn.jitter(upTo: .seconds(1))
        return true
    }
}
