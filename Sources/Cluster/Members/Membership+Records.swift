import Ground

/// What is believed of the others, and how it changes.
extension Membership {
    /// How a record was come by.
    enum RecordSource: Hashable, Sendable {
        /// This node has seen it: a hello, a probe without an answer, a time that ran out.
        case local
        /// This member has seen it, and pushed it.
        case direct(NodeID)
        /// Somebody repeats it.
        case gossip
        /// It was so before this node came: the others know, and it is not repeated.
        case historical
    }

    /// Believes `record` if it is news.
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

    /// Somebody who was not known.
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

    /// Keeps `record` and lets everything follow.
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
            probes.insert(id, &turn.dice)
        }
        if record.state == .left {
            dialSchedule.removeMember(id)
        } else {
            planDials(record, &turn)
        }
    }

    /// Of two who hear of each other the one with the smaller id dials first.
    private mutating func planDials(_ record: MemberRecord, _ turn: inout StepContext) {
        let half = Interval.milliseconds(500)
        let head = own.member.id < record.member.id ? Interval.zero : half
        let dueAt = turn.now + head + turn.jitter(upTo: half)
        dialSchedule.addMember(
            record.member.address, record.member.id, isLive: record.state.isLive, dueAt: dueAt)
        if mesh.connection(to: record.member.id) != nil { dialSchedule.connected(record.member.id) }
    }

    // MARK: Suspicion

    /// This node has waited in vain for an answer.
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
        // It refutes at once if it hears of it.
        if let line = mesh.connection(to: id), let record = members[id] {
            send(.updates([record]), on: line, &turn)
        }
    }

    /// Somebody has waited long enough; here the member has the least time left, and hears of it.
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

    mutating func expireSuspicions(_ turn: inout StepContext) {
        for (id, suspicion) in zip(suspicions.keys, suspicions.values)
        where suspicion.deadline <= turn.now {
            markDead(id, .local, &turn)
        }
    }

    /// A suspected member had its time.
    private mutating func markDead(_ id: NodeID, _ source: RecordSource, _ turn: inout StepContext)
    {
        guard let held = members[id], held.state == .suspected else { return }
        apply(MemberRecord(held.member, held.incarnation, .dead), before: held, source, &turn)
        closeAll(with: id, .dead, &turn)
    }

    // MARK: Pushing

    /// Tells everybody, unless somebody else does first: the more there are, the longer the wait.
    mutating func pushSoon(_ id: NodeID, _ turn: inout StepContext) {
        let spread = min(settings.pushDelayMax, .milliseconds(Int64(liveCount)))
        dissemination.push(id, at: turn.now + turn.jitter(upTo: spread))
    }

    mutating func pushDue(_ turn: inout StepContext) {
        let ids = dissemination.takePushes(at: turn.now).filter { id in
            // Two more accusers than needed say nothing new.
            members[id]?.state != .suspected
                || suspicions[id].map { !$0.isConfirmed(excluding: own.member.id) } ?? true
        }
        push(ids.compactMap { self[$0] }, &turn)
    }

    /// Tells every connected member now.
    mutating func push(_ records: [MemberRecord], _ turn: inout StepContext) {
        var rest = records[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(settings.pushMax))
            rest = rest.dropFirst(settings.pushMax)
            for line in mesh.peerConnections { send(.updates(part), on: line, &turn) }
        }
    }
}
