import Ground

/// Asking for signs of life.
extension Membership {
    /// Whatever is due of the probe under way, or of the next one.
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

    /// The target has not answered, or is not connected: some others ask it, and it is asked on
    /// every other connection with it.
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
        // Whoever was asked and says neither yes nor no does not reach this node either.
        health.worsened(
            by: probe.indirectCount == 0 ? 1 : max(0, probe.indirectCount - probe.nacks))
        raiseSuspicion(probe.target, &turn)
    }
}

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

/// Pings that are sent for others, and whom their answers go to.
struct Relays: Sendable {
    struct Relay: Hashable, Sendable {
        /// Who asked, and under which number.
        let requester: ConnectionID
        let requestSequence: UInt32
        /// When the asker is told that there is no answer yet; nil once it was.
        var nackAt: Instant?
        let forgetAt: Instant
    }

    /// By the number of the ping.
    private var relays = SortedTable<UInt32, Relay>()
    /// More askers are told at once that there is no answer.
    static let countMax = 256

    var hasRoom: Bool { relays.count < Self.countMax }
    var nextDue: Instant? { relays.values.map { $0.nackAt ?? $0.forgetAt }.min() }

    mutating func add(_ relay: Relay, sequence: UInt32) {
        relays[sequence] = relay
    }

    /// The relay whose ping was answered; it is over.
    mutating func ackReceived(_ sequence: UInt32) -> Relay? {
        defer { relays[sequence] = nil }
        return relays[sequence]
    }

    /// Those who are to be told now that there is no answer; what is too old is forgotten.
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

/// How far this node trusts its own eyes (Lifeguard §IV.A, "local health multiplier").
///
/// A node that misses answers which it should have had is slow or cut off itself; it then probes
/// less often and waits longer, so that it accuses others less.
struct LocalHealth: Hashable, Sendable {
    /// 0 is well.
    private(set) var score = 0
    let scoreMax: Int

    init(scoreMax: Int) {
        self.scoreMax = scoreMax
    }

    mutating func worsened(by steps: Int = 1) {
        score = min(scoreMax, score + steps)
    }

    mutating func improved() {
        score = max(0, score - 1)
    }

    func scaled(_ interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds * Int64(score + 1))
    }
}
