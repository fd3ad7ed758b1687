import Ground

/// Conflicts between two processes with one node id; see ``IdentityConflicts``.
extension Membership {
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
        guard !identityConflicts.addClaimant(newcomer, &turn),
            let line = mesh.connection(to: held.member.id)
        else { return }
        let sequence = turn.nextSequence()
        identityConflicts.start(
            IdentityConflicts.Check(
                claimant: newcomer, earlier: held.member.process, sequence: sequence,
                endsAt: turn.now + detector.health.scaled(settings.probeTimeout)))
        send(.ping(sequence: sequence, updates: []), on: line, &turn)
    }

    /// Ends the check of an earlier process that has responded.
    ///
    /// The newcomer is refused; if it was only reported, its record is sent to the earlier process,
    /// which then refutes it.
    mutating func identityCheckAcked(_ sequence: UInt32, _ turn: inout StepContext) {
        guard let newcomer = identityConflicts.takeRefuted(sequence) else { return }
        if let connection = newcomer.connection {
            turn.effects.append(.close(connection, .duplicateIdentity))
        } else if let line = mesh.connection(to: newcomer.record.member.id) {
            send(.updates([newcomer.record]), on: line, &turn)
        }
    }

    /// Ends the checks whose earlier process did not respond in time; the newcomer replaces it.
    ///
    /// Also resolves conflicts about this node's own id, and closes outdated connections, when
    /// their time is over.
    mutating func expireIdentityChecks(_ turn: inout StepContext) {
        for check in identityConflicts.takeUnanswered(at: turn.now) {
            let newcomer = check.claimant
            let id = newcomer.record.member.id
            if mesh.process(of: id) == check.earlier { closeAll(with: id, .superseded, &turn) }
            if let connection = newcomer.connection {
                admit(connection, dialled: newcomer.dialled, newcomer.record, &turn)
            } else {
                merge(newcomer.record, .gossip, &turn)
            }
        }
        if identityConflicts.closeOverdue(&turn) { refuseToServe(.duplicateIdentity, &turn) }
    }

    /// Ends this process's membership and stops it from serving.
    mutating func refuseToServe(_ why: MembershipEffect.ServingRefusal, _ turn: inout StepContext) {
        phase = .ended
        for id in mesh.connections.keys { turn.effects.append(.close(id, .leaving)) }
        turn.effects.append(.refuseToServe(why))
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
        if record.state != .alive { detector.health.worsened() }
        refute(above: record.incarnation, &turn)
    }

    /// Handles a record of another process of this node.
    private mutating func duplicateReported(_ record: MemberRecord, _ turn: inout StepContext) {
        let isJoining = !own.member.role.contains(.isCaughtUp) || !hasMemberTable
        let answer = identityConflicts.answer(
            to: record, own: own, isJoining: isJoining, at: turn.now)
        switch answer {
        case .ignore: return
        case .refute: refute(above: record.incarnation, &turn)
        case .refuseToServe(let why): refuseToServe(why, &turn)
        }
    }

    /// Raises this process's incarnation above `incarnation` and announces it as alive.
    private mutating func refute(above incarnation: Incarnation, _ turn: inout StepContext) {
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
            let sequence = turn.nextSequence()
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
