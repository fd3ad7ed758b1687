package import Ground

/// Who is in the cluster, as one node believes it: SWIM (Das, Gupta, Motivala, DSN 2002) with
/// Lifeguard (Dadgar, Phillips, Currey, DSN-W 2018), over one connection per pair.
///
/// The shell owns sockets and tells what happens; this decides whom to dial, which connection
/// stays, what to say to whom and who lives. What differs from SWIM over datagrams, and why:
///
/// - Connections lose nothing while they stand, so changes are pushed once; repeating on pings, and
///   the exchange of tables, find those whom a push missed.
/// - A connection that breaks is a hint: the member is dialled and probed next. It is no proof.
/// - What is heard of a death makes a member suspected here, not dead: after a split each side
/// holds
///   the other side's members dead, and must not talk its own side into it. The suspected
///   one is told at once, and refutes.
/// - Time in which this process stood still counts against nobody.
package struct Membership: Sendable {
    /// How far a node has come.
    package enum Phase: Hashable, Sendable {
        /// It takes part.
        case serving
        /// It has said that it goes, and waits for the acks under these numbers.
        case leaving(until: Instant, waiting: [UInt32: NodeID])
        /// It has gone, or it refuses to serve; nothing follows.
        case ended
    }

    package let settings: Settings
    /// What this node says of itself, in its hello too.
    package internal(set) var own: MemberRecord
    package internal(set) var phase = Phase.serving
    /// Since when; a young process gives way to an older one with its id.
    let startedAt: Instant
    var members: MemberList
    var mesh: Mesh
    var dialSchedule: DialSchedule
    var probes: ProbeSchedule
    var relays = Relays()
    var dissemination = Dissemination()
    var suspicions = SortedTable<NodeID, Suspicion>()
    var identityConflicts = IdentityConflicts()
    var health: LocalHealth
    var nextExchangeAt: Instant
    /// Nobody is asked for a table earlier: when many connections open at once, one table says
    /// what all would.
    var nextTableRequestAt: Instant
    /// Somebody who has taken this node has sent a table.
    package internal(set) var hasMemberTable = false
    private var sequence: UInt32 = 0

    /// A node that knows of nobody; `incarnation` has the synced boot epoch of its directory.
    package init(
        _ member: Member, _ incarnation: Incarnation, settings: Settings = Settings(),
        now: Instant
    ) {
        precondition(settings.membersMax > 1, "a cluster of \(settings.membersMax)")
        self.settings = settings
        own = MemberRecord(member, incarnation, .alive)
        startedAt = now
        members = MemberList(countMax: settings.membersMax - 1)
        mesh = Mesh(own: member.id)
        dialSchedule = DialSchedule(settings: settings)
        probes = ProbeSchedule(at: now)
        health = LocalHealth(scoreMax: settings.healthMax)
        nextExchangeAt = now + settings.exchangeInterval
        nextTableRequestAt = now
        dissemination.restart(member.id)
    }

    // MARK: What is believed

    /// Everybody's record, this node's own first, then by id.
    package var records: [MemberRecord] { [own] + members.records }

    package subscript(id: NodeID) -> MemberRecord? {
        id == own.member.id ? own : members[id]
    }

    /// Alive and suspected members, this node included.
    package var liveCount: Int { members.liveCount + (own.state.isLive ? 1 : 0) }

    /// The connection that everything said to a member goes over; nil if it is not connected.
    package func connection(to id: NodeID) -> ConnectionID? { mesh.connection(to: id) }

    /// Connected members, by id.
    package var connectedMembers: [NodeID] { mesh.peers }

    /// Another process with this node's id has come, and one of the two will give way.
    package var hasDuplicate: Bool { !identityConflicts.duplicates.isEmpty }

    /// How little this node trusts its own eyes, from 0 (well) to ``Settings/healthMax``.
    package var healthScore: Int { health.score }

    // MARK: Events

    /// When ``MembershipEvent/ticked`` is wanted; changes with every event.
    package var nextTick: Instant {
        switch phase {
        case .ended: return .distantFuture
        case .leaving(let until, _): return until
        case .serving: break
        }
        let waits: [Instant?] = [
            probes.nextDue, relays.nextDue, dissemination.nextPush, dialSchedule.nextDialAt,
            suspicions.values.map(\.deadline).min(),
            mesh.nextDue(settings, nextTableRequestAt: nextTableRequestAt),
            identityConflicts.nextDue, nextExchangeAt,
        ]
        return waits.compactMap { $0 }.min() ?? .distantFuture
    }

    /// Takes in what happened at `now` and appends what is to be done.
    package mutating func handle(
        _ event: MembershipEvent, now: Instant, using dice: inout SplitMix64,
        effects: inout [MembershipEffect]
    ) {
        var turn = StepContext(now: now, dice: dice)
        defer {
            dice = turn.dice
            effects += turn.effects
        }
        if case .ended = phase { return rejectAfterEnd(event, &turn) }
        switch event {
        case .ticked: ticked(&turn)
        case .seedsResolved(let addresses):
            dialSchedule.seedsResolved(addresses, &turn)
        case .dialFailed(let address): dialSchedule.dialFailed(address, &turn)
        case .connectionOpened(let id, let dialled, let member, let incarnation):
            let record = MemberRecord(member, incarnation, .alive)
            connectionOpened(id, dialled: dialled, record, &turn)
        case .connectionClosed(let id, let reason): connectionClosed(id, reason, &turn)
        case .connectionNearlyExhausted(let id):
            // Another one takes its place when it opens, and this one is closed as its spare.
            guard let peer = mesh[id]?.peer, mesh.connection(to: peer) == id else { break }
            dialSchedule.scheduleRedial(peer, at: now)
        case .messageReceived(let message, let id): messageReceived(message, on: id, &turn)
        case .roleChanged(let role): changeRole(role, &turn)
        case .leaveRequested: leave(&turn)
        }
        dial(&turn)
    }

    private mutating func ticked(_ turn: inout StepContext) {
        if case .leaving(let until, _) = phase {
            if until <= turn.now { finishLeaving(&turn) }
            return
        }
        compensateStall(&turn)
        pushDue(&turn)
        expireIdentityChecks(&turn)
        expireSuspicions(&turn)
        continueProbe(&turn)
        for relay in relays.takeUnanswered(at: turn.now) {
            send(.nack(sequence: relay.requestSequence), on: relay.requester, &turn)
        }
        for (id, reason) in mesh.overdue(at: turn.now, settings) { close(id, reason, &turn) }
        while nextTableRequestAt <= turn.now, let id = mesh.scheduleTableRequest(at: turn.now) {
            requestTable(id, &turn)
        }
        exchangeTables(&turn)
    }

    /// A process that stood still (SIGSTOP, a suspended machine, a starved one) has not heard the
    /// answers that wait for it: everybody has so much more time.
    private mutating func compensateStall(_ turn: inout StepContext) {
        let lateness = turn.now - nextTick
        guard lateness > settings.stallThreshold else { return }
        health.worsened()
        probes.processStalled(for: lateness)
        mesh.processStalled(for: lateness, at: turn.now)
        suspicions.updateAll { _, suspicion in
            suspicion.processStalled(for: lateness, at: turn.now)
        }
        identityConflicts.processStalled(at: turn.now, settings)
    }

    private mutating func dial(_ turn: inout StepContext) {
        guard case .serving = phase, let due = dialSchedule.nextDialAt, due <= turn.now else {
            return
        }
        for address in dialSchedule.takeDue(&turn) { turn.effects.append(.dial(address)) }
    }

    /// After the end nothing is opened any more.
    private mutating func rejectAfterEnd(_ event: MembershipEvent, _ turn: inout StepContext) {
        guard case .connectionOpened(let id, _, _, _) = event else { return }
        turn.effects.append(.close(id, .leaving))
    }

    // MARK: Speaking

    mutating func nextSequence() -> UInt32 {
        sequence &+= 1
        return sequence
    }

    /// Says it if the connection is still there.
    mutating func send(_ message: GossipMessage, on id: ConnectionID, _ turn: inout StepContext) {
        guard phase != .ended, mesh[id] != nil || identityConflicts.isPending(id) else { return }
        turn.effects.append(.send(message, on: id))
        if case .ping = message { mesh.recordPing(id, at: turn.now) }
    }

    /// What rides on the next message; what `first` is believed to be stands first, if it is not
    /// well (Lifeguard §IV.C, "buddy system").
    mutating func piggybackedRecords(first: NodeID? = nil) -> [MemberRecord] {
        let times = settings.retransmitMultiplier * digits(liveCount)
        let ids = dissemination.takePiggyback(settings.piggybackMax, timesMax: times)
        let ill = first.flatMap { members[$0] }.flatMap { $0.state == .alive ? nil : $0 }
        let rest = ids.filter { $0 != ill?.member.id }.compactMap { self[$0] }
        return (ill.map { [$0] } ?? []) + rest
    }

    /// Decimal digits of a number of members: log10, rounded up.
    private func digits(_ count: Int) -> Int {
        count < 10 ? 1 : count < 100 ? 2 : 3
    }
}

extension Membership {
    /// The constants of the protocol's pace and its limits; the defaults are what a node uses.
    ///
    /// Pace after memberlist's for local networks (DefaultLANConfig), which Lifeguard was measured
    /// with.
    package struct Settings: Hashable, Sendable {
        /// Between two probes by one node, while its local health is good.
        package var probeInterval = Interval.seconds(1)
        /// After a ping, before others are asked.
        package var probeTimeout = Interval.milliseconds(500)
        /// Members that are asked to ping a silent one.
        package var indirectProbes = 3
        /// The worst local health, which multiplies interval and time-out by one more than this.
        package var healthMax = 8
        /// Times log10 of the members, at least 1, times ``probeInterval``: the least time that a
        /// suspected member has.
        package var suspicionMultiplier: Int64 = 4
        /// The most time that a suspected member has is so many times the least.
        package var suspicionMaxFactor: Int64 = 6
        /// Accusers beside the first after whom a suspected member has the least time.
        package var confirmations = 2
        /// Times the digits of the number of members: how often a change is repeated.
        package var retransmitMultiplier = 4
        /// Records that ride on one ping, ack or ping request.
        package var piggybackMax = 6
        /// Records in one message of news.
        package var pushMax = 32
        /// At most so long the push of a change waits for somebody else's.
        package var pushDelayMax = Interval.milliseconds(200)
        /// Between two exchanges of tables by one node, in a cluster of up to 32.
        package var exchangeInterval = Interval.seconds(30)
        /// Live and gone ones, this node included.
        package var membersMax = 256
        /// The shell resolves the seeds' names so often.
        package var resolveInterval = Interval.seconds(10)
        /// The shell gives up a dial that has brought no hello after so long.
        package var dialTimeout = Interval.seconds(5)
        /// Addresses of seeds, the lowest.
        package var seedsMax = 256
        /// Dials under way.
        package var dialsMax = 16
        /// The first wait after a failed dial; it doubles with each.
        package var dialDelayMin = Interval.seconds(1)
        /// The longest wait between dials to seeds and live members.
        package var dialDelayMax = Interval.seconds(10)
        /// The longest wait between dials to dead members.
        package var deadDialDelayMax = Interval.seconds(60)
        /// One's own address is let alone for so long.
        package var selfDialDelay = Interval.seconds(300)
        /// A connection on which a ping is not answered for so long is replaced.
        package var pingTimeoutMax = Interval.seconds(10)
        /// Of two connections of one pair the member with the smaller id closes the one that is not
        /// used after so long, the other member after twice as long.
        package var spareLifetimeMax = Interval.seconds(10)
        /// Between two questions for tables because connections were opened.
        package var tableRequestInterval = Interval.milliseconds(500)
        /// The accepting side leaves the first question to the dialling side for so long.
        package var tableRequestDelay = Interval.milliseconds(300)
        /// A tick later than this was late because this process stood still.
        package var stallThreshold = Interval.milliseconds(500)
        /// Of two processes with one id that meet, one waits for so long for the other's claim.
        package var duplicateTimeout = Interval.seconds(2)
        /// A process that is younger than this is the later of two with one id.
        package var seniorityAge = Interval.seconds(30)
        /// The leave waits for so long for those who do not answer.
        package var leaveTimeout = Interval.seconds(2)

        package init() {}
    }
}

/// One event's handling: when it happened, whose dice are thrown and what comes out.
struct StepContext {
    let now: Instant
    var dice: SplitMix64
    var effects: [MembershipEffect] = []

    /// From zero up to `interval`.
    mutating func jitter(upTo interval: Interval) -> Interval {
        guard interval > .zero else { return .zero }
        return Interval(nanoseconds: Int64.random(in: 0..<interval.nanoseconds, using: &dice))
    }
}
