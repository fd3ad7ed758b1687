import Ground

/// How a change becomes known to everybody.
///
/// Who finds something out himself pushes it to every member as `news`; everybody who hears of it
/// repeats it on his pings, acks and ping requests some times (SWIM §4.1, infection), which finds
/// those whom the push missed. So `news` is always first-hand, and what rides is hearsay: that is
/// how accusers are told from those who repeat an accusation.
///
/// When many find the same out at once, as when a member's connections all break, each waits for a
/// random while, and does not push what it hears from another in time.
struct Dissemination: Sendable {
    /// How often what is believed of these members was repeated.
    private var repeated = SortedTable<NodeID, Int>()
    /// When what is believed of these members is to be pushed.
    private(set) var pushes = SortedTable<NodeID, Instant>()

    var nextPush: Instant? { pushes.values.min() }

    /// Repeat what is now believed of `id`, from the start.
    mutating func restart(_ id: NodeID) {
        repeated[id] = 0
    }

    mutating func remove(_ id: NodeID) {
        repeated[id] = nil
        pushes[id] = nil
    }

    mutating func push(_ id: NodeID, at instant: Instant) {
        pushes[id] = pushes[id].map { min($0, instant) } ?? instant
    }

    /// Somebody else has made it known.
    mutating func cancelPush(_ id: NodeID) {
        pushes[id] = nil
    }

    /// Whose records are to be pushed now.
    mutating func takePushes(at now: Instant) -> [NodeID] {
        let due = zip(pushes.keys, pushes.values).filter { $0.1 <= now }.map(\.0)
        for id in due { pushes[id] = nil }
        return due
    }

    /// At most `count` members whose records ride on the next message, those repeated least first;
    /// each rides `timesMax` times.
    mutating func takePiggyback(_ count: Int, timesMax: Int) -> [NodeID] {
        guard !repeated.isEmpty else { return [] }
        let order = repeated.keys.indices.sorted { left, right in
            (repeated.values[left], left) < (repeated.values[right], right)
        }
        let chosen = order.prefix(count).map { repeated.keys[$0] }
        for id in chosen {
            let times = (repeated[id] ?? 0) + 1
            repeated[id] = times < timesMax ? times : nil
        }
        return chosen
    }
}
