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
