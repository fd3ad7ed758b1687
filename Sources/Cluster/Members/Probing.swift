import Ground

/// Whom to ask for a sign of life next, and the probe that is under way (SWIM §3.1, §4.3).
///
/// All members in a random order, then in another: a member is probed at least once in two rounds,
/// and once a round on average. Those whose connection broke come first.
struct ProbeSchedule: Sendable {
    struct Probe: Hashable, Sendable {
        let target: NodeID
        let sequence: UInt32
        /// Where it was asked; nil while it is not connected.
        var connection: ConnectionID?
        /// When others are asked; nil once they are.
        var indirectAt: Instant?
        /// When the target has failed.
        var deadline: Instant
        /// Members that were asked, and owe an ack or a nack.
        var indirectCount = 0
        var nacks = 0
    }

    private var order: [NodeID] = []
    private var priorityTargets: [NodeID] = []
    var probe: Probe?
    /// When the next probe starts.
    var nextProbeAt: Instant

    init(at now: Instant) {
        nextProbeAt = now
    }

    var nextDue: Instant {
        guard let probe else { return nextProbeAt }
        return min(probe.indirectAt ?? probe.deadline, probe.deadline)
    }

    /// Probe `id` next.
    mutating func prioritize(_ id: NodeID) {
        guard !priorityTargets.contains(id) else { return }
        priorityTargets.append(id)
    }

    /// The next one to probe; nil if nobody lives.
    mutating func takeNext(_ roster: MemberList, _ dice: inout SplitMix64) -> NodeID? {
        while let id = priorityTargets.first {
            priorityTargets.removeFirst()
            if roster.isLive(id) { return id }
        }
        while let id = order.popLast() {
            if roster.isLive(id) { return id }
        }
        order = roster.ids.filter(roster.isLive).shuffled(using: &dice)
        return order.popLast()
    }

    /// A new member is probed somewhere in this round.
    mutating func insert(_ id: NodeID, _ dice: inout SplitMix64) {
        guard !order.contains(id) else { return }
        order.insert(id, at: Int.random(in: 0...order.count, using: &dice))
    }

    /// This process stood still for so long.
    mutating func processStalled(for lateness: Interval) {
        nextProbeAt = nextProbeAt + lateness
        guard var shifted = probe else { return }
        shifted.indirectAt = shifted.indirectAt.map { $0 + lateness }
        shifted.deadline = shifted.deadline + lateness
        probe = shifted
    }
}
