import Ground

/// Whom to ask for a sign of life next, and the probe that is under way (SWIM §3.1, §4.3).
///
/// All members in a random order, then in another: a member is probed at least once in two rounds,
/// and once a round on average. Those whose connection broke come first.
struct Probing: Sendable {
    struct Probe: Hashable, Sendable {
        let target: NodeID
        let sequence: UInt32
        /// Where it was asked; nil while it is not connected.
        var line: ConnectionID?
        /// When others are asked; nil once they are.
        var askAt: Instant?
        /// When the target has failed.
        var endsAt: Instant
        /// Members that were asked, and owe an ack or a nack.
        var asked = 0
        var nacks = 0
    }

    private var order: [NodeID] = []
    private var urgent: [NodeID] = []
    var probe: Probe?
    /// When the next probe starts.
    var nextAt: Instant

    init(at now: Instant) {
        nextAt = now
    }

    var nextDue: Instant {
        guard let probe else { return nextAt }
        return min(probe.askAt ?? probe.endsAt, probe.endsAt)
    }

    /// Probe `id` next.
    mutating func hurry(_ id: NodeID) {
        guard !urgent.contains(id) else { return }
        urgent.append(id)
    }

    /// The next one to probe; nil if nobody lives.
    mutating func takeNext(_ roster: Roster, _ dice: inout Dice) -> NodeID? {
        while let id = urgent.first {
            urgent.removeFirst()
            if roster.isLive(id) { return id }
        }
        while let id = order.popLast() {
            if roster.isLive(id) { return id }
        }
        order = roster.ids.filter(roster.isLive).shuffled(using: &dice)
        return order.popLast()
    }

    /// A new member is probed somewhere in this round.
    mutating func joined(_ id: NodeID, _ dice: inout Dice) {
        guard !order.contains(id) else { return }
        order.insert(id, at: Int.random(in: 0...order.count, using: &dice))
    }

    /// This process stood still for so long.
    mutating func stoodStill(for lateness: Interval) {
        nextAt = nextAt + lateness
        guard var shifted = probe else { return }
        shifted.askAt = shifted.askAt.map { $0 + lateness }
        shifted.endsAt = shifted.endsAt + lateness
        probe = shifted
    }
}
