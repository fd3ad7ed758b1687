import Ground

/// Probing of members.
extension Membership {
    /// Advances the probe in progress, or starts the next one, when due.
    mutating func continueProbe(_ turn: inout StepContext) {
        if let probe = probes.probe {
            if probe.deadline <= turn.now {
                probeFailed(probe, &turn)
            } else if let askAt = probe.indirectAt, askAt <= turn.now {
                sendIndirectProbes(&turn)
            }
        }
        guard probes.probe == nil, probes.nextProbeAt <= turn.now else { return }
        let interval = health.scaled(settings.probeInterval)
        probes.nextProbeAt = turn.now + interval
        guard let target = probes.takeNext(members, &turn.dice) else { return }
        startProbe(target, endsAt: turn.now + interval, &turn)
    }

    private mutating func startProbe(_ target: NodeID, endsAt: Instant, _ turn: inout StepContext) {
        let sequence = nextSequence()
        probes.probe = ProbeSchedule.Probe(target: target, sequence: sequence, deadline: endsAt)
        guard let line = mesh.connection(to: target) else { return sendIndirectProbes(&turn) }
        probes.probe?.connection = line
        probes.probe?.indirectAt = turn.now + health.scaled(settings.probeTimeout)
        send(.ping(sequence: sequence, updates: piggybackedRecords(first: target)), on: line, &turn)
    }

    /// Asks some other members to ping the target, and pings it on its spare connections.
    ///
    /// Used when the target has not responded or is not connected.
    private mutating func sendIndirectProbes(_ turn: inout StepContext) {
        guard let probe = probes.probe else { return }
        let others = mesh.peers.filter { $0 != probe.target && members[$0]?.state == .alive }
            .shuffled(using: &turn.dice).prefix(settings.indirectProbes)
        probes.probe?.indirectAt = nil
        probes.probe?.indirectCount = others.count
        for line in mesh.all(with: probe.target) where line != probe.connection {
            send(.ping(sequence: probe.sequence, updates: []), on: line, &turn)
        }
        for other in others {
            guard let line = mesh.connection(to: other) else { continue }
            let question = GossipMessage.pingRequest(
                sequence: probe.sequence, target: probe.target, updates: piggybackedRecords())
            send(question, on: line, &turn)
        }
    }

    private mutating func probeFailed(_ probe: ProbeSchedule.Probe, _ turn: inout StepContext) {
        probes.probe = nil
        // A member that replied with neither an ack nor a nack is not reaching this node either.
        health.worsened(
            by: probe.indirectCount == 0 ? 1 : max(0, probe.indirectCount - probe.nacks))
        raiseSuspicion(probe.target, &turn)
    }
}

/// The order in which members are probed, and the probe in progress (SWIM §3.1, §4.3).
///
/// Each round probes all members in a new random order: a member is probed at least once in two
/// rounds and once a round on average. Members whose connection broke come first.
struct ProbeSchedule: Sendable {
    /// A probe in progress.
    struct Probe: Hashable, Sendable {
        let target: NodeID
        let sequence: UInt32
        /// The connection that was pinged; `nil` while the target is not connected.
        var connection: ConnectionID?
        /// When the indirect probes are sent; `nil` once they are.
        var indirectAt: Instant?
        /// When the probe counts as failed.
        var deadline: Instant
        /// Members that were asked to ping the target and owe an ack or a nack.
        var indirectCount = 0
        var nacks = 0
    }

    /// The rest of this round; the last one is next.
    private var order: [NodeID] = []
    /// Members to probe before the round continues.
    private var priorityTargets: [NodeID] = []
    /// The probe in progress.
    var probe: Probe?
    /// When the next probe starts.
    var nextProbeAt: Instant

    init(at now: Instant) {
        nextProbeAt = now
    }

    /// When the next step is due.
    var nextDue: Instant {
        guard let probe else { return nextProbeAt }
        return min(probe.indirectAt ?? probe.deadline, probe.deadline)
    }

    /// Schedules `id` as the next target.
    mutating func prioritize(_ id: NodeID) {
        guard !priorityTargets.contains(id) else { return }
        priorityTargets.append(id)
    }

    /// Returns the next member to probe; `nil` if no other member is live.
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

    /// Inserts a new member at a random position of this round.
    mutating func insert(_ id: NodeID, _ dice: inout SplitMix64) {
        guard !order.contains(id) else { return }
        order.insert(id, at: Int.random(in: 0...order.count, using: &dice))
    }

    /// Postpones everything by `lateness`, for which this process stood still.
    mutating func processStalled(for lateness: Interval) {
        nextProbeAt = nextProbeAt + lateness
        guard var shifted = probe else { return }
        shifted.indirectAt = shifted.indirectAt.map { $0 + lateness }
        shifted.deadline = shifted.deadline + lateness
        probe = shifted
    }
}

/// Pings in progress on behalf of other members.
struct Relays: Sendable {
    /// One ping on behalf of another member.
    struct Relay: Hashable, Sendable {
        /// The connection of the requester.
        let requester: ConnectionID
        /// The sequence number of the ping request.
        let requestSequence: UInt32
        /// When the requester receives a nack; `nil` once it was sent.
        var nackAt: Instant?
        /// When the relay is dropped.
        let forgetAt: Instant
    }

    /// Relays by the sequence number of their ping.
    private var relays = SortedTable<UInt32, Relay>()
    /// Maximum number of relays; further requests get a nack at once.
    static let countMax = 256

    var hasRoom: Bool { relays.count < Self.countMax }
    var nextDue: Instant? { relays.values.map { $0.nackAt ?? $0.forgetAt }.min() }

    /// Adds a relay whose ping has the number `sequence`.
    mutating func add(_ relay: Relay, sequence: UInt32) {
        relays[sequence] = relay
    }

    /// Removes and returns the relay whose ping was acknowledged.
    mutating func ackReceived(_ sequence: UInt32) -> Relay? {
        defer { relays[sequence] = nil }
        return relays[sequence]
    }

    /// Returns the relays that need a nack now, and drops those that are too old.
    mutating func takeUnanswered(at now: Instant) -> [Relay] {
        var unanswered: [Relay] = []
        for (sequence, relay) in zip(relays.keys, relays.values) {
            if let nackAt = relay.nackAt, nackAt <= now {
                unanswered.append(relay)
                relays[sequence]?.nackAt = nil
            }
            if relay.forgetAt <= now { relays[sequence] = nil }
        }
        return unanswered
    }
}

/// This node's confidence in its own observations (Lifeguard §IV.A, "local health multiplier").
///
/// A node that misses responses which it should have received is slow or cut off itself. It then
/// probes less often and waits longer, so that it accuses others less.
struct LocalHealth: Hashable, Sendable {
    /// The score, from 0 (healthy) to ``scoreMax``.
    private(set) var score = 0
    let scoreMax: Int

    init(scoreMax: Int) {
        self.scoreMax = scoreMax
    }

    /// Raises the score by `steps`, up to the maximum.
    mutating func worsened(by steps: Int = 1) {
        score = min(scoreMax, score + steps)
    }

    /// Lowers the score by one, down to 0.
    mutating func improved() {
        score = max(0, score - 1)
    }

    /// Returns `interval` times one more than the score.
    func scaled(_ interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * Int64(score + 1))
    }
}
