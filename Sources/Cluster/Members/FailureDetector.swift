import Ground

/// The failure detector of SWIM (§3.1, §4.3) with Lifeguard's local health: which members are
/// pinged when and by whom, and which have not responded.
struct FailureDetector: Sendable {
    /// A message that the detector sends.
    struct Message: Hashable, Sendable {
        /// The kind of a message.
        enum Kind: Hashable, Sendable {
            /// A ping of a member.
            case ping(NodeID)
            /// The same ping on a spare connection, without records.
            case repeatedPing
            /// A request to ping a member.
            case pingRequest(NodeID)
            /// The reply to a ping request whose target has responded.
            case ack
            /// The reply to a ping request whose target has not responded in time.
            case nack
        }

        let kind: Kind
        let sequence: UInt32
        let connection: ConnectionID

        init(_ kind: Kind, _ sequence: UInt32, on connection: ConnectionID) {
            (self.kind, self.sequence, self.connection) = (kind, sequence, connection)
        }

        /// Returns the message with the records that `piggyback` returns; a nack and a repeated
        /// ping carry none.
        ///
        /// The argument of `piggyback` is the target of a ping, whose record comes first, or `nil`.
        func gossip(_ piggyback: (_ target: NodeID?) -> [MemberRecord]) -> GossipMessage {
            switch kind {
            case .ping(let target): .ping(sequence: sequence, updates: piggyback(target))
            case .repeatedPing: .ping(sequence: sequence, updates: [])
            case .pingRequest(let target):
                .pingRequest(sequence: sequence, target: target, updates: piggyback(nil))
            case .ack: .ack(sequence: sequence, updates: piggyback(nil))
            case .nack: .nack(sequence: sequence)
            }
        }
    }

    /// A probe in progress.
    private struct Probe: Sendable {
        let target: NodeID
        let sequence: UInt32
        /// The connection that was pinged; `nil` while the target is not connected.
        let connection: ConnectionID?
        /// When the indirect probes are sent; `nil` once they are.
        var indirectAt: Instant?
        /// When the probe counts as failed.
        var deadline: Instant
        /// Members that were sent a ping request and owe an ack or a nack.
        var indirectCount = 0
        var nacks = 0

        /// When the next step is due.
        var nextDue: Instant { min(indirectAt ?? deadline, deadline) }
    }

    /// The order in which members are probed.
    var order = ProbeOrder()
    /// This node's confidence in its own observations.
    var health: LocalHealth
    private var probe: Probe?
    /// When the next probe starts.
    private var nextProbeAt: Instant
    private var relays = Relays()
    private let settings: MembershipSettings

    init(settings: MembershipSettings, at now: Instant) {
        self.settings = settings
        health = LocalHealth(scoreMax: settings.healthMax)
        nextProbeAt = now
    }

    /// When the next step is due.
    var nextDue: Instant {
        min(probe?.nextDue ?? nextProbeAt, relays.nextDue ?? .distantFuture)
    }

    /// Ends the probe in progress if its time is over, and returns its target; otherwise returns
    /// `nil`.
    ///
    /// The health worsens by the number of replies that are missing.
    mutating func takeFailedTarget(at now: Instant) -> NodeID? {
        guard let failed = probe, failed.deadline <= now else { return nil }
        probe = nil
        // A member that replied with neither an ack nor a nack is not reaching this node either.
        health.worsened(
            by: failed.indirectCount == 0 ? 1 : max(0, failed.indirectCount - failed.nacks))
        return failed.target
    }

    /// Advances the probe in progress, or starts the next one.
    ///
    /// - Returns: The messages to send, including due nacks to members on whose behalf this node
    ///   pings.
    mutating func takeDueMessages(
        _ members: MemberList, _ mesh: Mesh, _ turn: inout StepContext
    ) -> [Message] {
        var messages: [Message] = []
        if let probe {
            if let indirectAt = probe.indirectAt, indirectAt <= turn.now {
                messages = indirectProbes(members, mesh, &turn)
            }
        } else if nextProbeAt <= turn.now {
            let interval = health.scaled(settings.probeInterval)
            nextProbeAt = turn.now + interval
            if let target = order.takeNext(members, &turn.dice) {
                messages = startProbe(target, endsAt: nextProbeAt, members, mesh, &turn)
            }
        }
        return messages + relays.takeNacks(at: turn.now)
    }

    /// Starts a probe with a ping, or with indirect probes if the target is not connected.
    private mutating func startProbe(
        _ target: NodeID, endsAt: Instant, _ members: MemberList, _ mesh: Mesh,
        _ turn: inout StepContext
    ) -> [Message] {
        let (sequence, connection) = (turn.nextSequence(), mesh.connection(to: target))
        probe = Probe(
            target: target, sequence: sequence, connection: connection, deadline: endsAt)
        guard let connection else { return indirectProbes(members, mesh, &turn) }
        probe?.indirectAt = turn.now + health.scaled(settings.probeTimeout)
        return [Message(.ping(target), sequence, on: connection)]
    }

    /// Asks some connected members that are alive to ping the target, and pings the target on its
    /// spare connections.
    ///
    /// Used when the target has not responded or is not connected.
    private mutating func indirectProbes(
        _ members: MemberList, _ mesh: Mesh, _ turn: inout StepContext
    ) -> [Message] {
        guard let probe else { return [] }
        let others = mesh.peers.filter { $0 != probe.target && members[$0]?.state == .alive }
            .shuffled(using: &turn.dice).prefix(settings.indirectProbes)
        self.probe?.indirectAt = nil
        self.probe?.indirectCount = others.count
        let spares = mesh.all(with: probe.target).filter { $0 != probe.connection }
        return spares.map { Message(.repeatedPing, probe.sequence, on: $0) }
            + others.compactMap { mesh.connection(to: $0) }.map {
                Message(.pingRequest(probe.target), probe.sequence, on: $0)
            }
    }

    /// Begins to ping `target` on behalf of `requester`, and returns the ping.
    ///
    /// Returns a nack for the requester if the target is not connected or too many relays are open.
    mutating func relay(
        _ sequence: UInt32, to target: NodeID, for requester: ConnectionID, _ mesh: Mesh,
        _ turn: inout StepContext
    ) -> Message {
        guard relays.hasRoom, let connection = mesh.connection(to: target) else {
            return Message(.nack, sequence, on: requester)
        }
        let own = turn.nextSequence()
        // Earlier than the requester's own time-out for indirect probes (Lifeguard §IV.A).
        let nackDelay = Interval(nanoseconds: settings.probeTimeout.nanoseconds / 5 * 4)
        let relay = Relays.Relay(
            requester: requester, requestSequence: sequence, nackAt: turn.now + nackDelay,
            forgetAt: turn.now + settings.probeInterval)
        relays.add(relay, sequence: own)
        return Message(.ping(target), own, on: connection)
    }

    /// Ends the probe that was acknowledged, which improves the health, or the relayed ping, whose
    /// requester is sent an ack.
    ///
    /// - Returns: The messages to send; `nil` if `sequence` belongs to neither.
    mutating func ackReceived(_ sequence: UInt32) -> [Message]? {
        guard probe?.sequence == sequence else {
            return relays.ackReceived(sequence).map {
                [Message(.ack, $0.requestSequence, on: $0.requester)]
            }
        }
        probe = nil
        health.improved()
        return []
    }

    /// Counts the nack of a member that was asked to ping the target of the probe in progress;
    /// ignores any other.
    mutating func nackReceived(_ sequence: UInt32) {
        if probe?.sequence == sequence { probe?.nacks += 1 }
    }

    /// Postpones the probes by `lateness`, for which this process stood still, and worsens the
    /// health.
    mutating func processStalled(for lateness: Interval) {
        health.worsened()
        nextProbeAt = nextProbeAt + lateness
        guard var shifted = probe else { return }
        shifted.indirectAt = shifted.indirectAt.map { $0 + lateness }
        shifted.deadline = shifted.deadline + lateness
        probe = shifted
    }
}

/// The order in which members are probed.
///
/// Each round probes all members in a new random order: a member is probed at least once in two
/// rounds and once a round on average. Members whose connection broke come first.
struct ProbeOrder: Sendable {
    /// The rest of this round; the last one is next.
    private var order: [NodeID] = []
    /// Members to probe before the round continues.
    private var priorityTargets: [NodeID] = []

    /// Schedules `id` to be probed before the round continues, after those scheduled earlier.
    mutating func prioritize(_ id: NodeID) {
        guard !priorityTargets.contains(id) else { return }
        priorityTargets.append(id)
    }

    /// Returns the next member to probe; `nil` if no other member is live.
    mutating func takeNext(_ members: MemberList, _ dice: inout SplitMix64) -> NodeID? {
        while let id = priorityTargets.first {
            priorityTargets.removeFirst()
            if members.isLive(id) { return id }
        }
        while let id = order.popLast() {
            if members.isLive(id) { return id }
        }
        order = members.ids.filter(members.isLive).shuffled(using: &dice)
        return order.popLast()
    }

    /// Inserts a new member at a random position of this round.
    mutating func insert(_ id: NodeID, _ dice: inout SplitMix64) {
        guard !order.contains(id) else { return }
        order.insert(id, at: Int.random(in: 0...order.count, using: &dice))
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

    /// True if another relay can be added.
    var hasRoom: Bool { relays.count < Self.countMax }
    var nextDue: Instant? { relays.values.map { $0.nackAt ?? $0.forgetAt }.min() }

    /// Adds a relay whose ping has the number `sequence`.
    mutating func add(_ relay: Relay, sequence: UInt32) {
        relays[sequence] = relay
    }

    /// Removes and returns the relay whose ping was acknowledged; `nil` if there is none.
    mutating func ackReceived(_ sequence: UInt32) -> Relay? {
        defer { relays[sequence] = nil }
        return relays[sequence]
    }

    /// Returns the nacks that are due, and drops the relays that are too old.
    mutating func takeNacks(at now: Instant) -> [FailureDetector.Message] {
        var nacks: [FailureDetector.Message] = []
        for (sequence, relay) in zip(relays.keys, relays.values) {
            if let nackAt = relay.nackAt, nackAt <= now {
                nacks.append(
                    FailureDetector.Message(.nack, relay.requestSequence, on: relay.requester))
                relays[sequence]?.nackAt = nil
            }
            if relay.forgetAt <= now { relays[sequence] = nil }
        }
        return nacks
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
