import Ground

/// The records of other members, and their changes.
extension Membership {
    /// The source of a record.
    enum RecordSource: Hashable, Sendable {
        /// This node's own observation: a hello, an unanswered probe, an expired suspicion.
        case local
        /// A push by this member, which observed it.
        case direct(NodeID)
        /// A repetition by any member.
        case gossip
        /// The first table after this node joined: others know it, so it is not repeated.
        case historical
    }

    /// Adopts `record` if it supersedes the present one.
    mutating func merge(_ record: MemberRecord, _ source: RecordSource, _ turn: inout StepContext) {
        let id = record.member.id
        guard id != own.member.id else { return ownRecordReceived(record, &turn) }
        guard case .serving = phase else { return }
        guard let held = members[id] else { return addMember(record, source, &turn) }
        if source != .local, conflictsWithConnection(record, held) {
            return checkIdentity(IdentityConflicts.Claimant(record: record), against: held, &turn)
        }
        if record.supersedes(held) {
            if record.state == .dead, held.state.isLive, source != .local {
                return deathReported(record, held, source, &turn)
            }
            return apply(record, before: held, source, &turn)
        }
        guard record == held else { return }
        if case .direct(let peer) = source {
            if record.state == .suspected { suspicions[id]?.confirm(by: peer) }
            if record.state != .suspected { dissemination.cancelPush(id) }
        }
    }

    /// Adds a member that was not known, if a slot can be made.
    private mutating func addMember(
        _ record: MemberRecord, _ source: RecordSource, _ turn: inout StepContext
    ) {
        if !record.state.isLive, members.count >= members.countMax { return }
        let room = members.evictIfFull()
        if let forgotten = room.forgotten {
            let id = forgotten.member.id
            dialSchedule.removeMember(id)
            dissemination.remove(id)
            closeAll(with: id, .clusterFull, &turn)
            turn.effects.append(.forget(forgotten))
        }
        guard room.isThere else { return }
        apply(record, before: nil, source, &turn)
    }

    /// Stores `record` and updates everything that depends on it.
    private mutating func apply(
        _ record: MemberRecord, before: MemberRecord?, _ source: RecordSource,
        _ turn: inout StepContext
    ) {
        let id = record.member.id
        members.update(record, at: turn.now)
        turn.effects.append(.memberChanged(record, before: before))
        dissemination.cancelPush(id)
        if source != .historical { dissemination.restart(id) }
        if source == .local { pushSoon(id, &turn) }
        suspicions[id] = nil
        if record.state == .suspected { startSuspicion(id, source, &turn) }
        if record.state.isLive, before?.state.isLive != true {
            detector.order.insert(id, &turn.dice)
        }
        if record.state == .left {
            dialSchedule.removeMember(id)
        } else {
            dialSchedule.addMember(
                record, dialsFirst: own.member.id < id,
                isConnected: mesh.connection(to: id) != nil, &turn)
        }
    }

    // MARK: Suspicion

    /// Suspects a member whose probe has failed, or confirms a suspicion of it.
    mutating func raiseSuspicion(_ id: NodeID, _ turn: inout StepContext) {
        guard let held = members[id] else { return }
        switch held.state {
        case .alive:
            merge(MemberRecord(held.member, held.incarnation, .suspected), .local, &turn)
        case .suspected:
            guard let suspicion = suspicions[id], !suspicion.isConfirmed else { return }
            suspicions[id]?.confirm(by: own.member.id)
            pushSoon(id, &turn)
        case .dead, .left: return
        }
    }

    private mutating func startSuspicion(
        _ id: NodeID, _ source: RecordSource, _ turn: inout StepContext
    ) {
        var suspicion = Suspicion(at: turn.now, members: liveCount, settings: settings)
        switch source {
        case .local: suspicion.confirm(by: own.member.id)
        case .direct(let peer): suspicion.confirm(by: peer)
        case .gossip, .historical: break
        }
        suspicions[id] = suspicion
        // Sent to the member itself, which refutes at once.
        if let line = mesh.connection(to: id), let record = members[id] {
            send(.updates([record]), on: line, &turn)
        }
    }

    /// Handles a report of a death: the member is suspected, with the shortest time to refute.
    private mutating func deathReported(
        _ record: MemberRecord, _ held: MemberRecord, _ source: RecordSource,
        _ turn: inout StepContext
    ) {
        let id = record.member.id
        let suspected = MemberRecord(record.member, record.incarnation, .suspected)
        if suspected.supersedes(held) { apply(suspected, before: held, source, &turn) }
        suspicions[id]?.markExpiredElsewhere()
        guard let deadline = suspicions[id]?.deadline, deadline <= turn.now else { return }
        markDead(id, source, &turn)
    }

    /// Marks as dead every suspected member whose time is over.
    mutating func expireSuspicions(_ turn: inout StepContext) {
        for (id, suspicion) in zip(suspicions.keys, suspicions.values)
        where suspicion.deadline <= turn.now {
            markDead(id, .local, &turn)
        }
    }

    /// Marks a suspected member as dead and closes its connections.
    private mutating func markDead(_ id: NodeID, _ source: RecordSource, _ turn: inout StepContext)
    {
        guard let held = members[id], held.state == .suspected else { return }
        apply(MemberRecord(held.member, held.incarnation, .dead), before: held, source, &turn)
        closeAll(with: id, .dead, &turn)
    }

    // MARK: Pushing

    /// Schedules a push to all members, cancelled if another member pushes first.
    ///
    /// The random delay grows with the number of members.
    mutating func pushSoon(_ id: NodeID, _ turn: inout StepContext) {
        let spread = min(settings.pushDelayMax, .milliseconds(Int64(liveCount)))
        dissemination.push(id, at: turn.now + turn.jitter(upTo: spread))
    }

    /// Pushes the records that are due.
    mutating func pushDue(_ turn: inout StepContext) {
        let ids = dissemination.takePushes(at: turn.now).filter { id in
            // With as many accusers as needed, besides this node, a push adds nothing.
            members[id]?.state != .suspected
                || suspicions[id].map { !$0.isConfirmed(excluding: own.member.id) } ?? true
        }
        push(ids.compactMap { self[$0] }, &turn)
    }

    /// Sends `records` to every connected member now.
    mutating func push(_ records: [MemberRecord], _ turn: inout StepContext) {
        var rest = records[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(settings.pushMax))
            rest = rest.dropFirst(settings.pushMax)
            for line in mesh.peerConnections { send(.updates(part), on: line, &turn) }
        }
    }
}
