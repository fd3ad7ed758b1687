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
    package let settings: MembershipSettings
    /// This node's own record, which its hello carries too.
    package internal(set) var own: MemberRecord
    /// This node's phase.
    package internal(set) var phase = Phase.serving
    var members: MemberList
    var mesh: Mesh
    var dialSchedule: DialSchedule
    var detector: FailureDetector
    var dissemination: Dissemination
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
        _ member: Member, _ incarnation: Incarnation, settings: MembershipSettings = .init(),
        now: Instant
    ) {
        precondition(settings.membersMax > 1, "a cluster of \(settings.membersMax)")
        self.settings = settings
        own = MemberRecord(member, incarnation, .alive)
        members = MemberList(own: member.id, settings: settings)
        mesh = Mesh(own: member.id)
        dialSchedule = DialSchedule(settings: settings)
        detector = FailureDetector(settings: settings, at: now)
        identityConflicts = IdentityConflicts(
            own: member.process, settings: settings, startedAt: now)
        tables = TableExchange(settings: settings, at: now)
        dissemination = Dissemination(settings: settings)
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

    /// This node's distrust of its own observations, from 0 (healthy) to
    /// ``MembershipSettings/healthMax``.
    package var healthScore: Int { detector.health.score }

    /// True once a member that has admitted this node has sent its table.
    package var hasMemberTable: Bool { tables.hasReceived }

    // MARK: Events

    /// When ``MembershipEvent/ticked`` is due; changes with every event.
    package var nextTick: Instant {
        if case .leaving(let until, _) = phase { return until }
        guard phase == .serving else { return .distantFuture }
        let waits: [Instant?] = [
            detector.nextDue, dissemination.nextPush, dialSchedule.nextDialAt, members.nextDue,
            mesh.nextDue(settings, nextTableRequestAt: tables.nextRequestAt),
            identityConflicts.nextDue, tables.nextExchangeAt,
        ]
        return waits.compactMap { $0 }.min() ?? .distantFuture
    }

    /// Handles `event` and appends the resulting effects.
    ///
    /// A node that leaves closes connections that open; an ended one ignores all other events.
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
        if phase != .serving, case .connectionOpened(let id, _, _, _) = event {
            return turn.effects.append(.close(id, .leaving))
        }
        guard phase != .ended else { return }
        switch event {
        case .ticked: ticked(&turn)
        case .seedsResolved(let addresses): dialSchedule.seedsResolved(addresses, &turn)
        case .dialFailed(let address): dialSchedule.dialFailed(address, &turn)
        case .connectionOpened(let id, let dialled, let member, let incarnation):
            connectionOpened(id, dialled, MemberRecord(member, incarnation, .alive), &turn)
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
        if case .serving = phase { dialSchedule.dialDue(&turn) }
    }

    /// Does everything that is due; in a leaving node that is only the end of the leave.
    private mutating func ticked(_ turn: inout StepContext) {
        if case .leaving(let until, _) = phase {
            if until <= turn.now { finishLeaving(&turn) }
            return
        }
        compensateStall(&turn)
        pushDue(&turn)
        expireIdentityChecks(&turn)
        while let change = members.expireNextSuspicion(at: turn.now) {
            publish(change, .local, &turn)
        }
        if let target = detector.takeFailedTarget(at: turn.now) { raiseSuspicion(target, &turn) }
        send(detector.takeDueMessages(members, mesh, &turn), &turn)
        for (id, reason) in mesh.overdue(at: turn.now, settings) { close(id, reason, &turn) }
        while tables.nextRequestAt <= turn.now, let id = mesh.dueTableRequest(at: turn.now) {
            requestTable(id, &turn)
        }
        guard tables.takeDue(members: liveCount, &turn) else { return }
        let partner = mesh.peerConnections.randomElement(using: &turn.dice)
        if let partner { requestTable(partner, &turn) }
    }

    /// Extends all time-outs after this process stood still (SIGSTOP, a suspended or overloaded
    /// machine), since responses may wait unread.
    private mutating func compensateStall(_ turn: inout StepContext) {
        let lateness = turn.now - nextTick
        guard lateness > settings.stallThreshold else { return }
        detector.processStalled(for: lateness)
        mesh.processStalled(for: lateness, at: turn.now)
        members.processStalled(for: lateness, at: turn.now)
        identityConflicts.processStalled(at: turn.now)
    }

    // MARK: Receiving

    /// Handles a message that arrived on the connection `id`.
    ///
    /// Outside the mesh it only answers pings of claimants and reads records of this node.
    mutating func messageReceived(
        _ message: GossipMessage, on id: ConnectionID, _ turn: inout StepContext
    ) {
        guard let connection = mesh[id] else {
            // A claimant that is not yet admitted only learns that this node is alive.
            if case .ping(let sequence, _) = message, identityConflicts.isPending(id) {
                send(.ack(sequence: sequence, updates: []), on: id, &turn)
            }
            // Each of two may know of a later start of the other.
            if case .updates(let updates) = message, identityConflicts.isOutdated(id) {
                for record in updates where record.member.id == own.member.id {
                    ownRecordReceived(record, &turn)
                }
            }
            return
        }
        let peer = connection.peer
        if mesh.messageReceived(id, isResponse: message.isResponse, at: turn.now) {
            turn.effects.append(.useConnection(peer, id))
        }
        let source: RecordSource =
            switch message {
            case .updates: .direct(peer)
            case .table: hasMemberTable ? .gossip : .historical
            case .ping, .ack, .pingRequest, .nack: .gossip
            }
        for record in message.records.prefix(settings.membersMax) { merge(record, source, &turn) }
        switch message {
        case .ping(let sequence, _):
            send(.ack(sequence: sequence, updates: piggybackedRecords(first: peer)), on: id, &turn)
        case .ack(let sequence, _): ackReceived(sequence, &turn)
        case .pingRequest(let sequence, let target, _):
            send([detector.relay(sequence, to: target, for: id, mesh, &turn)], &turn)
        case .nack(let sequence): detector.nackReceived(sequence)
        case .updates: return
        case .table(_, let isRequest):
            tables.received()
            guard isRequest, mesh[id] != nil else { return }
            // The peer's table came with its request.
            mesh.scheduleTableRequest(mesh.connection(to: peer) ?? id, at: nil)
            send(.table(records, isRequest: false), on: id, &turn)
        }
    }

    /// Handles an ack for `sequence`, if that is still outstanding.
    private mutating func ackReceived(_ sequence: UInt32, _ turn: inout StepContext) {
        if case .leaving(let until, var waiting) = phase {
            waiting[sequence] = nil
            phase = .leaving(until: until, waiting: waiting)
            if waiting.isEmpty { finishLeaving(&turn) }
            return
        }
        guard let messages = detector.ackReceived(sequence) else {
            return identityCheckAcked(sequence, &turn)
        }
        send(messages, &turn)
    }

    // MARK: Sending

    /// Sends `message`, unless the connection has closed or this process's membership has ended.
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

    /// Returns the records for the next message: that of `first` unless alive (Lifeguard §IV.C,
    /// "buddy system"), then those to piggyback.
    mutating func piggybackedRecords(first: NodeID? = nil) -> [MemberRecord] {
        let ids = dissemination.takePiggyback(members: liveCount)
        guard let first, let record = members[first], record.state != .alive else {
            return ids.compactMap { self[$0] }
        }
        return [record] + ids.filter { $0 != first }.compactMap { self[$0] }
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
