package import Ground

/// The members of the cluster, as one node believes them to be.
///
/// SWIM (Das, Gupta, Motivala, DSN 2002) with Lifeguard (Dadgar, Phillips, Currey, DSN-W 2018),
/// over one connection per pair. The shell owns the sockets and reports events; this decides which
/// addresses to dial, which connection to keep, what to send and which members are live.
/// Differences from SWIM over datagrams, and the reasons:
///
/// - Open connections lose nothing, so changes are pushed once; piggybacking and the exchange of
///   tables reach members that a push missed.
/// - A connection that breaks is a hint, not proof: the member is dialled and probed next.
/// - A reported death makes a member suspected here, not dead: after a split each side believes the
///   other side's members dead, and must not convince that side of it. The suspected member is
///   notified at once, and refutes.
/// - Time in which this process stood still counts against no member.
package struct Membership: Sendable {
    /// The lifecycle phase of a node.
    package enum Phase: Hashable, Sendable {
        /// The node takes part.
        case serving
        /// The node has announced its leave and awaits the acks of these sequence numbers.
        case leaving(until: Instant, waiting: [UInt32: NodeID])
        /// The node has left, or refuses to serve; no effect follows.
        case ended
    }

    /// The protocol's constants.
    package let settings: Settings
    /// This node's own record, which its hello carries too.
    package internal(set) var own: MemberRecord
    /// This node's phase.
    package internal(set) var phase = Phase.serving
    var members: MemberList
    var mesh: Mesh
    var dialSchedule: DialSchedule
    var detector: FailureDetector
    var dissemination = Dissemination()
    var suspicions = SortedTable<NodeID, Suspicion>()
    var identityConflicts: IdentityConflicts
    var tables: TableExchange
    /// The last sequence number that was used.
    private var sequence: UInt32 = 0

    /// Creates the membership of a node that knows no other member.
    ///
    /// - Parameters:
    ///   - member: The node itself.
    ///   - incarnation: The incarnation, with the synced boot epoch of the node's directory.
    ///   - settings: The protocol's constants.
    ///   - now: The current time.
    package init(
        _ member: Member, _ incarnation: Incarnation, settings: Settings = Settings(),
        now: Instant
    ) {
        precondition(settings.membersMax > 1, "a cluster of \(settings.membersMax)")
        self.settings = settings
        own = MemberRecord(member, incarnation, .alive)
        members = MemberList(countMax: settings.membersMax - 1)
        mesh = Mesh(own: member.id)
        dialSchedule = DialSchedule(settings: settings)
        detector = FailureDetector(settings: settings, at: now)
        identityConflicts = IdentityConflicts(
            own: member.process, settings: settings, startedAt: now)
        tables = TableExchange(settings: settings, at: now)
        dissemination.restart(member.id)
    }

    // MARK: Records

    /// All records, this node's own first, then by id.
    package var records: [MemberRecord] { [own] + members.records }

    /// The record of `id`; `nil` for a node that is not known.
    package subscript(id: NodeID) -> MemberRecord? {
        id == own.member.id ? own : members[id]
    }

    /// The number of alive and suspected members, including this node.
    package var liveCount: Int { members.liveCount + (own.state.isLive ? 1 : 0) }

    /// Returns the connection on which to send to a member; `nil` if it is not connected.
    package func connection(to id: NodeID) -> ConnectionID? { mesh.connection(to: id) }

    /// The connected members, by id.
    package var connectedMembers: [NodeID] { mesh.peers }

    /// True while another process with this node's id is connected, until one of the two gives way.
    package var hasDuplicate: Bool { identityConflicts.hasDuplicate }

    /// This node's distrust of its own observations, from 0 (healthy) to ``Settings/healthMax``.
    package var healthScore: Int { detector.health.score }

    /// True once a member that has admitted this node has sent its table.
    package var hasMemberTable: Bool { tables.hasReceived }

    // MARK: Events

    /// When ``MembershipEvent/ticked`` is due; changes with every event.
    package var nextTick: Instant {
        switch phase {
        case .ended: return .distantFuture
        case .leaving(let until, _): return until
        case .serving: break
        }
        let waits: [Instant?] = [
            detector.nextDue, dissemination.nextPush, dialSchedule.nextDialAt,
            suspicions.values.map(\.deadline).min(),
            mesh.nextDue(settings, nextTableRequestAt: tables.nextRequestAt),
            identityConflicts.nextDue, tables.nextExchangeAt,
        ]
        return waits.compactMap { $0 }.min() ?? .distantFuture
    }

    /// Handles `event` and appends the resulting effects.
    ///
    /// - Parameters:
    ///   - event: The event, in the order of occurrence.
    ///   - now: The time of the event.
    ///   - dice: The source of all randomness.
    ///   - effects: The list that effects are appended to.
    package mutating func handle(
        _ event: MembershipEvent, now: Instant, using dice: inout SplitMix64,
        effects: inout [MembershipEffect]
    ) {
        var turn = StepContext(now: now, dice: dice, sequence: sequence)
        defer {
            (dice, sequence) = (turn.dice, turn.sequence)
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
            // The new connection replaces this one when it opens, and this one is then closed as
            // its spare.
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
        if let target = detector.takeFailedTarget(at: turn.now) { raiseSuspicion(target, &turn) }
        send(detector.takeDueMessages(members, mesh, &turn), &turn)
        for (id, reason) in mesh.overdue(at: turn.now, settings) { close(id, reason, &turn) }
        while tables.nextRequestAt <= turn.now, let id = mesh.dueTableRequest(at: turn.now) {
            requestTable(id, &turn)
        }
        exchangeTables(&turn)
    }

    /// Extends all time-outs after this process stood still (SIGSTOP, a suspended or overloaded
    /// machine), since responses may wait unread.
    private mutating func compensateStall(_ turn: inout StepContext) {
        let lateness = turn.now - nextTick
        guard lateness > settings.stallThreshold else { return }
        detector.processStalled(for: lateness)
        mesh.processStalled(for: lateness, at: turn.now)
        suspicions.updateAll { _, suspicion in
            suspicion.processStalled(for: lateness, at: turn.now)
        }
        identityConflicts.processStalled(at: turn.now)
    }

    private mutating func dial(_ turn: inout StepContext) {
        guard case .serving = phase, let due = dialSchedule.nextDialAt, due <= turn.now else {
            return
        }
        for address in dialSchedule.takeDue(&turn) { turn.effects.append(.dial(address)) }
    }

    /// Closes connections that open after the end.
    private mutating func rejectAfterEnd(_ event: MembershipEvent, _ turn: inout StepContext) {
        guard case .connectionOpened(let id, _, _, _) = event else { return }
        turn.effects.append(.close(id, .leaving))
    }

    // MARK: Sending

    /// Sends `message` if the connection is still open.
    mutating func send(_ message: GossipMessage, on id: ConnectionID, _ turn: inout StepContext) {
        guard phase != .ended, mesh[id] != nil || identityConflicts.isPending(id) else { return }
        turn.effects.append(.send(message, on: id))
        if case .ping = message { mesh.recordPing(id, at: turn.now) }
    }

    /// Sends messages of the failure detector, with records to piggyback.
    mutating func send(_ messages: [FailureDetector.Message], _ turn: inout StepContext) {
        for message in messages {
            let gossip = message.gossip { piggybackedRecords(first: $0) }
            send(gossip, on: message.connection, &turn)
        }
    }

    /// Returns the records to piggyback on the next message.
    ///
    /// A record of `first` that is not alive comes first (Lifeguard §IV.C, "buddy system").
    mutating func piggybackedRecords(first: NodeID? = nil) -> [MemberRecord] {
        let ids = dissemination.takePiggyback(settings, members: liveCount)
        let ill = first.flatMap { members[$0] }.flatMap { $0.state == .alive ? nil : $0 }
        let rest = ids.filter { $0 != ill?.member.id }.compactMap { self[$0] }
        return (ill.map { [$0] } ?? []) + rest
    }
}

extension Membership {
    /// The constants of the protocol: times and limits.
    ///
    /// The defaults are those of a node. The times follow memberlist's for local networks
    /// (DefaultLANConfig), with which Lifeguard was measured.
    package struct Settings: Hashable, Sendable {
        /// The time between two probes by one node while its local health is good.
        package var probeInterval = Interval.seconds(1)
        /// The time after a ping before other members are asked to ping.
        package var probeTimeout = Interval.milliseconds(500)
        /// The number of members that are asked to ping a silent one.
        package var indirectProbes = 3
        /// The worst local health score; a score of n multiplies interval and time-out by n + 1.
        package var healthMax = 8
        /// The shortest suspicion time, in units of ``probeInterval`` times log10 of the members
        /// (at least 1).
        package var suspicionMultiplier: Int64 = 4
        /// The longest suspicion time, as a multiple of the shortest.
        package var suspicionMaxFactor: Int64 = 6
        /// The number of accusers after the first that reduce a suspicion to the shortest time.
        package var confirmations = 2
        /// How often a change is piggybacked, as a multiple of the decimal digits of the number of
        /// members.
        package var retransmitMultiplier = 4
        /// Maximum number of records piggybacked on a ping, ack or ping request.
        package var piggybackMax = 6
        /// Maximum number of records in one `updates` message.
        package var pushMax = 32
        /// Maximum delay of a push, in which another member's push may make it unnecessary.
        package var pushDelayMax = Interval.milliseconds(200)
        /// The time between two exchanges of tables by one node, in a cluster of up to 32.
        package var exchangeInterval = Interval.seconds(30)
        /// Maximum number of members, live or not, including this node.
        package var membersMax = 256
        /// The interval at which the shell resolves the seeds' names.
        package var resolveInterval = Interval.seconds(10)
        /// The time without a hello after which the shell gives up a dial.
        package var dialTimeout = Interval.seconds(5)
        /// Maximum number of seed addresses; the lowest are kept.
        package var seedsMax = 256
        /// Maximum number of dials in progress.
        package var dialsMax = 16
        /// The wait after the first failed dial; it doubles with each further one.
        package var dialDelayMin = Interval.seconds(1)
        /// Maximum wait between dials to seeds and live members.
        package var dialDelayMax = Interval.seconds(10)
        /// Maximum wait between dials to dead members.
        package var deadDialDelayMax = Interval.seconds(60)
        /// The wait before this node's own address is dialled again.
        package var selfDialDelay = Interval.seconds(300)
        /// The time without a response to a ping after which a connection is replaced.
        package var pingTimeoutMax = Interval.seconds(10)
        /// Maximum lifetime of an unused second connection of a pair; it is closed by the member
        /// with the smaller id, or by the other member after twice this time.
        package var spareLifetimeMax = Interval.seconds(10)
        /// The minimum time between two table requests after connections opened.
        package var tableRequestInterval = Interval.milliseconds(500)
        /// The delay with which the accepting side requests a table, as the dialling side requests
        /// first.
        package var tableRequestDelay = Interval.milliseconds(300)
        /// The lateness of a tick from which this process counts as having stood still.
        package var stallThreshold = Interval.milliseconds(500)
        /// The time for which one of two processes with one id waits for the other's claim.
        package var duplicateTimeout = Interval.seconds(2)
        /// The age below which a process is taken as the later of two with one id.
        package var seniorityAge = Interval.seconds(30)
        /// Maximum time for which a leaving node waits for acknowledgements.
        package var leaveTimeout = Interval.seconds(2)

        /// Creates the default settings.
        package init() {}
    }
}

/// The context of handling one event: its time, the source of randomness, the sequence number of
/// the last message that expects a reply, and the effects so far.
struct StepContext {
    let now: Instant
    var dice: SplitMix64
    private(set) var sequence: UInt32
    var effects: [MembershipEffect] = []

    init(now: Instant, dice: SplitMix64, sequence: UInt32) {
        (self.now, self.dice, self.sequence) = (now, dice, sequence)
    }

    /// Returns a sequence number for the next message that expects a reply.
    mutating func nextSequence() -> UInt32 {
        sequence &+= 1
        return sequence
    }

    /// Returns a random interval from zero up to, but excluding, `interval`.
    mutating func jitter(upTo interval: Interval) -> Interval {
        guard interval > .zero else { return .zero }
        return Interval(nanoseconds: Int64.random(in: 0..<interval.nanoseconds, using: &dice))
    }
}
