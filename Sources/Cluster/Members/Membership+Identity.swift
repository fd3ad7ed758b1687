import Ground

/// Conflicts between two processes with one node id.
///
/// A node's newer process replaces the earlier one when that no longer responds. While it responds,
/// every member that is connected with both refuses the newcomer. A node restored from an older
/// copy of its directory learns from the first tables that it was started more often than its
/// directory records: it has made promises that it cannot keep, and may not act as that member.
extension Membership {
    /// Maximum number of times that an older process raises its incarnation above a live
    /// duplicate's before it may give way.
    ///
    /// A young process does so only twice, since the record may be stale.
    private static let contestsMax = 8

    /// Returns true if the record is of another process than the one that this node is connected
    /// with.
    func conflictsWithConnection(_ record: MemberRecord, _ held: MemberRecord) -> Bool {
        let process = record.member.process
        return process != held.member.process && record.supersedes(held)
            && mesh.process(of: held.member.id) == held.member.process
    }

    /// Probes the earlier process.
    mutating func checkIdentity(
        _ newcomer: IdentityConflicts.Claimant, against held: MemberRecord,
        _ turn: inout StepContext
    ) {
        let id = held.member.id
        if let check = identityConflicts.checks[id] {
            if newcomer.connection == nil {
                // A connected claimant is better evidence than one in a repeated record.
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

    /// Ends the check of an earlier process that has responded.
    ///
    /// The newcomer is refused; if it was only reported, its record is sent to the earlier process,
    /// which then refutes it.
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

    /// Ends the checks whose earlier process did not respond in time; the newcomer replaces it.
    ///
    /// Also resolves conflicts about this node's own id, and closes outdated connections, when
    /// their time is over.
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

    /// Handles a hello with this node's own id.
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
        // Of two seniors the other sends its claim first, of two newcomers neither does; a
        // senior sends its claim before a newcomer's time is over.
        let patience = settings.duplicateTimeout
        let endsAt = turn.now + (isSenior ? patience : patience + patience)
        identityConflicts.duplicates[id] = IdentityConflicts.Duplicate(
            process: process, isSenior: isSenior, endsAt: endsAt)
    }

    /// Decides a conflict in which the duplicate has not claimed in time that this process is the
    /// later one.
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

    /// Handles a record of another process of this node.
    ///
    /// If that process started in this boot epoch or later and this one has just started, this
    /// node's directory is older than what the node has promised to keep.
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

    /// Returns an arbitrary order of two processes, the same on both sides, as the true order is
    /// unknown.
    private func isLater(than process: ProcessID) -> Bool {
        let mine = own.member.process
        return (mine.high, mine.low) > (process.high, process.low)
    }

    /// Ends this process's membership and stops it from serving.
    mutating func refuseToServe(_ why: MembershipEffect.ServingRefusal, _ turn: inout StepContext) {
        phase = .ended
        for id in mesh.connections.keys { turn.effects.append(.close(id, .leaving)) }
        turn.effects.append(.refuseToServe(why))
    }
}

/// Processes that claim the id of a member, or of this node, whose earlier process may be alive.
struct IdentityConflicts: Sendable {
    /// A process that claims, or is reported, to be a known node.
    struct Claimant: Hashable, Sendable {
        /// The claimant's connection; `nil` if it is known from a record alone.
        var connection: ConnectionID?
        var dialled: PeerAddress?
        var record: MemberRecord
    }

    /// A probe of an earlier process that a claimant would replace.
    struct Check: Hashable, Sendable {
        /// The process that replaces the earlier one if that does not respond.
        var claimant: Claimant
        /// The process that is probed.
        let earlier: ProcessID
        /// The sequence number of the probing ping.
        let sequence: UInt32
        var endsAt: Instant
    }

    /// A connection with another process that has this node's own id.
    struct Duplicate: Hashable, Sendable {
        let process: ProcessID
        /// True if this process was a member before it met the duplicate.
        let isSenior: Bool
        var endsAt: Instant
    }

    /// Checks in progress, by the claimed node id.
    var checks = SortedTable<NodeID, Check>()
    /// Duplicates of this node, by connection.
    var duplicates = SortedTable<ConnectionID, Duplicate>()
    /// Connections on which a process was sent a later record of its own node, with the time at
    /// which each is closed at the latest.
    ///
    /// Closing at once could lose that record, if the other side had sent something meanwhile.
    /// Nothing else is sent on them.
    var outdatedConnections = SortedTable<ConnectionID, Instant>()
    /// How often this node has raised its incarnation above that of a live duplicate.
    var contestCount = 0

    var nextDue: Instant? {
        (checks.values.map(\.endsAt) + duplicates.values.map(\.endsAt) + outdatedConnections.values)
            .min()
    }

    /// Returns true for the connection of a claimant or a duplicate, which is not in the mesh.
    func isPending(_ id: ConnectionID) -> Bool {
        duplicates[id] != nil || checks.values.contains { $0.claimant.connection == id }
    }

    /// Removes a closed connection; returns true if it was a claimant's or a duplicate's.
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

    /// Restarts the time-outs after this process stood still until `now`.
    mutating func processStalled(at now: Instant, _ settings: Membership.Settings) {
        checks.updateAll { _, check in
            check.endsAt = max(check.endsAt, now + settings.probeTimeout)
        }
        duplicates.updateAll { _, twin in
            twin.endsAt = max(twin.endsAt, now + settings.duplicateTimeout)
        }
    }
}

/// This node's own record.
extension Membership {
    /// Handles a record of this node that a peer has sent.
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

    /// Raises this process's incarnation above `incarnation` and announces it as alive.
    mutating func refute(above incarnation: Incarnation, _ turn: inout StepContext) {
        let before = own
        own.incarnation = max(own.incarnation, incarnation).raised
        announceOwn(before: before, &turn)
    }

    /// Changes this node's role and announces it.
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

    /// Announces that this node leaves, and waits until every connected peer has acknowledged it.
    mutating func leave(_ turn: inout StepContext) {
        guard case .serving = phase else { return }
        let before = own
        own.state = .left
        turn.effects.append(.memberChanged(own, before: before))
        var waiting: [UInt32: NodeID] = [:]
        for (peer, line) in zip(mesh.peers, mesh.peerConnections) {
            let sequence = nextSequence()
            waiting[sequence] = peer
            // The update is first-hand; the ack of the ping proves that it was read.
            send(.updates([own]), on: line, &turn)
            send(.ping(sequence: sequence, updates: []), on: line, &turn)
        }
        phase = .leaving(until: turn.now + settings.leaveTimeout, waiting: waiting)
        if waiting.isEmpty { finishLeaving(&turn) }
    }

    /// Ends the leave, reporting the members that have not acknowledged it.
    mutating func finishLeaving(_ turn: inout StepContext) {
        guard case .leaving(_, let waiting) = phase else { return }
        phase = .ended
        turn.effects.append(.finishLeaving(unacknowledged: waiting.values.sorted()))
    }
}
