import Ground

/// The records of other members, and their changes.
extension Membership {
    /// Adopts `record` if it supersedes the present one, unless this node leaves or has no slot.
    ///
    /// A record of this node is passed to ``ownRecordReceived(_:_:)``. A reported other process of
    /// a connected member is checked first.
    mutating func merge(_ record: MemberRecord, _ source: RecordSource, _ turn: inout StepContext) {
        let id = record.member.id
        guard id != own.member.id else { return ownRecordReceived(record, &turn) }
        guard case .serving = phase else { return }
        if let held = members[id] {
            if source != .local, record.member.process != held.member.process,
                record.supersedes(held), mesh.isConnected(with: held.member)
            {
                return checkIdentity(IdentityConflicts.Claimant(record: record), held, &turn)
            }
            if case .direct = source, record == held, record.state != .suspected {
                dissemination.cancelPush(id)
            }
        } else {
            guard makeRoom(for: record, &turn) else { return }
        }
        for change in members.merge(record, source, at: turn.now) { publish(change, source, &turn) }
    }

    /// Makes a slot for the record of a new member; returns false if there is none.
    private mutating func makeRoom(for record: MemberRecord, _ turn: inout StepContext) -> Bool {
        let room = members.makeRoom(for: record)
        if let forgotten = room.forgotten {
            let id = forgotten.member.id
            dialSchedule.removeMember(id)
            dissemination.remove(id)
            closeAll(with: id, .clusterFull, &turn)
            turn.effects.append(.forget(forgotten))
        }
        return room.isThere
    }

    /// Reports a changed record, spreads it, and adapts dialling, probing and connections to it.
    mutating func publish(
        _ change: MemberList.Change, _ source: RecordSource, _ turn: inout StepContext
    ) {
        let (record, id) = (change.record, change.record.member.id)
        let wasLive = change.before?.state.isLive == true
        let connection = mesh.connection(to: id)
        turn.effects.append(.memberChanged(record, before: change.before))
        dissemination.cancelPush(id)
        if source != .historical { dissemination.restart(id) }
        if source == .local { dissemination.schedulePush(id, members: liveCount, &turn) }
        if record.state == .suspected, let connection {
            // The suspected member itself refutes at once.
            send(.updates([record]), on: connection, &turn)
        }
        if record.state.isLive, !wasLive { detector.order.insert(id, &turn.dice) }
        if record.state == .left {
            dialSchedule.removeMember(id)
        } else {
            dialSchedule.addMember(
                record, dialsFirst: own.member.id < id, isConnected: connection != nil, &turn)
        }
        if record.state == .dead, wasLive { closeAll(with: id, .dead, &turn) }
    }

    /// Suspects a member whose probe has failed, or confirms a suspicion of it by this node.
    mutating func raiseSuspicion(_ id: NodeID, _ turn: inout StepContext) {
        if let held = members[id], held.state == .alive {
            merge(MemberRecord(held.member, held.incarnation, .suspected), .local, &turn)
        } else if members.confirmSuspicion(of: id) {
            dissemination.schedulePush(id, members: liveCount, &turn)
        }
    }

    // MARK: Pushing

    /// Pushes the records that are due, except suspicions that need no further accuser.
    mutating func pushDue(_ turn: inout StepContext) {
        // With as many accusers as needed, a push of a suspicion adds nothing.
        let ids = dissemination.takePushes(at: turn.now).filter { !members.isConfirmedByOthers($0) }
        push(ids.compactMap { self[$0] }, &turn)
    }

    /// Sends `records` to every connected member now.
    private mutating func push(_ records: [MemberRecord], _ turn: inout StepContext) {
        var rest = records[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(settings.pushMax))
            rest = rest.dropFirst(settings.pushMax)
            for connection in mesh.peerConnections { send(.updates(part), on: connection, &turn) }
        }
    }
}

/// This node's own record.
extension Membership {
    /// Refutes a record of this process that is not alive, or later than its own; ignores others.
    ///
    /// A record of another process of this node is a conflict of identities.
    mutating func ownRecordReceived(_ record: MemberRecord, _ turn: inout StepContext) {
        guard case .serving = phase else { return }
        guard record.member.process == own.member.process else {
            return duplicateReported(record, &turn)
        }
        guard record.incarnation >= own.incarnation else { return }
        if record.state == .alive, record.incarnation == own.incarnation { return }
        if record.state != .alive { detector.health.worsened() }
        announce(own.member, above: record.incarnation, &turn)
    }

    /// Ignores or refutes a record of another process of this node, or refuses to serve.
    private mutating func duplicateReported(_ record: MemberRecord, _ turn: inout StepContext) {
        let isJoining = !own.member.role.contains(.isCaughtUp) || !hasMemberTable
        switch identityConflicts.answer(to: record, own: own, isJoining: isJoining, at: turn.now) {
        case .ignore: return
        case .refute: announce(own.member, above: record.incarnation, &turn)
        case .refuseToServe(let why): refuseToServe(why, &turn)
        }
    }

    /// Changes this node's role and announces it, unless the role is the same or the node leaves.
    mutating func changeRole(_ role: Member.Role, _ turn: inout StepContext) {
        guard case .serving = phase, role != own.member.role else { return }
        var member = own.member
        member.role = role
        announce(member, above: own.incarnation, &turn)
    }

    /// Announces this process as alive, with an incarnation above its own and `incarnation`.
    private mutating func announce(
        _ member: Member, above incarnation: Incarnation, _ turn: inout StepContext
    ) {
        let before = own
        own = MemberRecord(member, max(own.incarnation, incarnation).raised, .alive)
        turn.effects.append(.memberChanged(own, before: before))
        dissemination.restart(own.member.id)
        push([own], &turn)
    }

    // MARK: Leaving

    /// Announces the leave, and awaits the acks of all connected peers for a limited time.
    mutating func leave(_ turn: inout StepContext) {
        guard case .serving = phase else { return }
        let before = own
        own.state = .left
        turn.effects.append(.memberChanged(own, before: before))
        var waiting: [UInt32: NodeID] = [:]
        for (peer, connection) in zip(mesh.peers, mesh.peerConnections) {
            let sequence = turn.nextSequence()
            waiting[sequence] = peer
            // The update is first-hand; the ack of the ping proves that it was read.
            send(.updates([own]), on: connection, &turn)
            send(.ping(sequence: sequence, updates: []), on: connection, &turn)
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
