import Ground

/// Two processes with one node id.
///
/// A node's newer process takes the earlier one's place when that no longer answers; while it
/// answers, the newcomer is refused by whoever is connected with both. A node restored from an
/// older copy of its directory learns from the first tables that it was started more often than
/// the directory knows: it has promised what it does not have, and is not that member any more.
extension Membership {
    /// A live twin may be raised above once by a young process, in case of a stale record, and so
    /// often by an older one; after that one of them gives way.
    private static let contestsMax = 8

    /// True if the record is of another process than the one that this node is connected with.
    func conflictsWithConnection(_ record: MemberRecord, _ held: MemberRecord) -> Bool {
        let process = record.member.process
        return process != held.member.process && record.supersedes(held)
            && mesh.process(of: held.member.id) == held.member.process
    }

    /// Asks the earlier process whether it lives.
    mutating func checkIdentity(
        _ newcomer: IdentityConflicts.Claimant, against held: MemberRecord,
        _ turn: inout StepContext
    ) {
        let id = held.member.id
        if let check = identityConflicts.checks[id] {
            if newcomer.connection == nil {
                // One who comes himself is better evidence than one who is talked of.
                if check.claimant.connection == nil,
                    newcomer.record.supersedes(check.claimant.record)
                {
                    identityConflicts.checks[id]?.claimant = newcomer
                }
                return
            }
            if let earlier = check.claimant.connection {
                turn.effects.append(.close(earlier, .redundant))
            }
            identityConflicts.checks[id]?.claimant = newcomer
            return
        }
        guard let line = mesh.connection(to: id) else { return }
        let sequence = nextSequence()
        identityConflicts.checks[id] = IdentityConflicts.Check(
            claimant: newcomer, earlier: held.member.process, sequence: sequence,
            endsAt: turn.now + health.scaled(settings.probeTimeout))
        send(.ping(sequence: sequence, updates: []), on: line, &turn)
    }

    /// The earlier process lives: the newcomer is refused, and what is said of it is told to the
    /// earlier one, which then speaks up.
    mutating func identityCheckAcked(_ sequence: UInt32, _ turn: inout StepContext) {
        for (id, check) in zip(identityConflicts.checks.keys, identityConflicts.checks.values)
        where check.sequence == sequence {
            identityConflicts.checks[id] = nil
            if let newcomer = check.claimant.connection {
                turn.effects.append(.close(newcomer, .duplicateIdentity))
            } else if let line = mesh.connection(to: id) {
                send(.updates([check.claimant.record]), on: line, &turn)
            }
        }
    }

    /// The earlier process did not answer in time: the newcomer takes its place.
    mutating func expireIdentityChecks(_ turn: inout StepContext) {
        for (id, check) in zip(identityConflicts.checks.keys, identityConflicts.checks.values)
        where check.endsAt <= turn.now {
            identityConflicts.checks[id] = nil
            if mesh.process(of: id) == check.earlier { closeAll(with: id, .superseded, &turn) }
            let newcomer = check.claimant
            if let connection = newcomer.connection {
                admit(connection, dialled: newcomer.dialled, newcomer.record, &turn)
            } else {
                merge(newcomer.record, .gossip, &turn)
            }
        }
        for (id, twin) in zip(
            identityConflicts.duplicates.keys, identityConflicts.duplicates.values)
        where twin.endsAt <= turn.now {
            resolveDuplicate(from: twin, on: id, &turn)
        }
        for (id, endsAt) in zip(
            identityConflicts.outdatedConnections.keys, identityConflicts.outdatedConnections.values
        )
        where endsAt <= turn.now {
            identityConflicts.outdatedConnections[id] = nil
            turn.effects.append(.close(id, .redundant))
        }
    }

    /// A hello with this node's own id.
    mutating func duplicateConnected(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout StepContext
    ) {
        if let dialled { dialSchedule.dialedSelf(dialled, at: turn.now) }
        guard record.member.process != own.member.process else {
            turn.effects.append(.close(id, .selfDial))
            return
        }
        let isSenior = hasMemberTable || turn.now - startedAt > settings.seniorityAge
        let process = record.member.process
        guard !isSenior || isLater(than: process) else {
            turn.effects.append(.close(id, .duplicateIdentity))
            return
        }
        // Of two seniors the other speaks first, of two newcomers nobody does; a senior speaks
        // before a newcomer's time is over.
        let patience = settings.duplicateTimeout
        let endsAt = turn.now + (isSenior ? patience : patience + patience)
        identityConflicts.duplicates[id] = IdentityConflicts.Duplicate(
            process: process, isSenior: isSenior, endsAt: endsAt)
    }

    /// The twin has not said that this process is the later one.
    private mutating func resolveDuplicate(
        from twin: IdentityConflicts.Duplicate, on id: ConnectionID, _ turn: inout StepContext
    ) {
        identityConflicts.duplicates[id] = nil
        guard !twin.isSenior, isLater(than: twin.process) else {
            turn.effects.append(.close(id, .duplicateIdentity))
            return
        }
        turn.effects.append(.close(id, .redundant))
        refuseToServe(.duplicateIdentity, &turn)
    }

    /// Another process of this node is believed in.
    ///
    /// One that started in this boot epoch or after it shows a process that has just started that
    /// its directory is older than what the node has promised to keep.
    mutating func duplicateReported(_ record: MemberRecord, _ turn: inout StepContext) {
        let isJoining = !own.member.role.contains(.isCaughtUp) || !hasMemberTable
        if isJoining, record.incarnation.epoch >= own.incarnation.epoch {
            return refuseToServe(.restoredCopy, &turn)
        }
        guard record.supersedes(own) else { return }
        if record.state.isLive {
            identityConflicts.contestCount += 1
            let isYoung = turn.now - startedAt < settings.seniorityAge
            if isYoung, identityConflicts.contestCount > 2 {
                return refuseToServe(.duplicateIdentity, &turn)
            }
            if identityConflicts.contestCount > Self.contestsMax,
                isLater(than: record.member.process)
            {
                return refuseToServe(.duplicateIdentity, &turn)
            }
        }
        refute(above: record.incarnation, &turn)
    }

    /// Nobody can tell who came first; both must choose the same.
    private func isLater(than process: ProcessID) -> Bool {
        let mine = own.member.process
        return (mine.high, mine.low) > (process.high, process.low)
    }

    mutating func refuseToServe(_ why: MembershipEffect.ServingRefusal, _ turn: inout StepContext) {
        phase = .ended
        for id in mesh.connections.keys { turn.effects.append(.close(id, .leaving)) }
        turn.effects.append(.refuseToServe(why))
    }
}

/// Newcomers with the id of a member whose earlier process may still live.
struct IdentityConflicts: Sendable {
    /// A process that says, or of which is said, that it is a known node.
    struct Claimant: Hashable, Sendable {
        /// Nil if it was only heard of.
        var connection: ConnectionID?
        var dialled: PeerAddress?
        var record: MemberRecord
    }

    /// The earlier process is asked whether it lives.
    struct Check: Hashable, Sendable {
        var claimant: Claimant
        let earlier: ProcessID
        let sequence: UInt32
        var endsAt: Instant
    }

    /// A connection with a process that has this node's own id.
    struct Duplicate: Hashable, Sendable {
        let process: ProcessID
        /// This process was here before it met the other.
        let isSenior: Bool
        var endsAt: Instant
    }

    var checks = SortedTable<NodeID, Check>()
    var duplicates = SortedTable<ConnectionID, Duplicate>()
    /// Connections on which a process was told that its node was started later than it knows, and
    /// when each is closed at the latest.
    ///
    /// What was told would be lost with one that is closed at once, if the other side had said
    /// something meanwhile. Nothing else is said on them.
    var outdatedConnections = SortedTable<ConnectionID, Instant>()
    /// How often this node has raised its incarnation above a live twin's.
    var contestCount = 0

    var nextDue: Instant? {
        (checks.values.map(\.endsAt) + duplicates.values.map(\.endsAt) + outdatedConnections.values)
            .min()
    }

    /// The connection of a newcomer or a twin, which is not in the mesh.
    func isPending(_ id: ConnectionID) -> Bool {
        duplicates[id] != nil || checks.values.contains { $0.claimant.connection == id }
    }

    /// True if the connection was a newcomer's or a twin's.
    mutating func connectionClosed(_ id: ConnectionID) -> Bool {
        outdatedConnections[id] = nil
        guard isPending(id) else { return false }
        duplicates[id] = nil
        for (node, check) in zip(checks.keys, checks.values)
        where check.claimant.connection == id {
            checks[node] = nil
        }
        return true
    }

    /// This process stood still until now: everybody has the whole time again.
    mutating func processStalled(at now: Instant, _ settings: Membership.Settings) {
        checks.updateAll { _, check in
            check.endsAt = max(check.endsAt, now + settings.probeTimeout)
        }
        duplicates.updateAll { _, twin in
            twin.endsAt = max(twin.endsAt, now + settings.duplicateTimeout)
        }
    }
}

/// What this node says of itself.
extension Membership {
    /// Takes in what others believe of this node.
    mutating func ownRecordReceived(_ record: MemberRecord, _ turn: inout StepContext) {
        guard case .serving = phase else { return }
        guard record.member.process == own.member.process else {
            return duplicateReported(record, &turn)
        }
        guard record.incarnation >= own.incarnation else { return }
        if record.state == .alive, record.incarnation == own.incarnation { return }
        if record.state != .alive { health.worsened() }
        refute(above: record.incarnation, &turn)
    }

    /// Says that this process lives, above `incarnation`.
    mutating func refute(above incarnation: Incarnation, _ turn: inout StepContext) {
        let before = own
        own.incarnation = max(own.incarnation, incarnation).raised
        announceOwn(before: before, &turn)
    }

    mutating func changeRole(_ role: Member.Role, _ turn: inout StepContext) {
        guard case .serving = phase, role != own.member.role else { return }
        let before = own
        own.member.role = role
        own.incarnation = own.incarnation.raised
        announceOwn(before: before, &turn)
    }

    private mutating func announceOwn(before: MemberRecord, _ turn: inout StepContext) {
        turn.effects.append(.memberChanged(own, before: before))
        dissemination.restart(own.member.id)
        push([own], &turn)
    }

    // MARK: Leaving

    /// Says that it goes, and waits until everybody connected has acknowledged it.
    mutating func leave(_ turn: inout StepContext) {
        guard case .serving = phase else { return }
        let before = own
        own.state = .left
        turn.effects.append(.memberChanged(own, before: before))
        var waiting: [UInt32: NodeID] = [:]
        for (peer, line) in zip(mesh.peers, mesh.peerConnections) {
            let sequence = nextSequence()
            waiting[sequence] = peer
            // First-hand, then a question whose answer says that it was read.
            send(.updates([own]), on: line, &turn)
            send(.ping(sequence: sequence, updates: []), on: line, &turn)
        }
        phase = .leaving(until: turn.now + settings.leaveTimeout, waiting: waiting)
        if waiting.isEmpty { finishLeaving(&turn) }
    }

    mutating func finishLeaving(_ turn: inout StepContext) {
        guard case .leaving(_, let waiting) = phase else { return }
        phase = .ended
        turn.effects.append(.finishLeaving(unacknowledged: waiting.values.sorted()))
    }
}
