import Ground

/// What is believed of the others, and how it changes.
extension Membership {
    /// How a record was come by.
    enum Source: Hashable, Sendable {
        /// This node has seen it: a hello, a probe without an answer, a time that ran out.
        case own
        /// This member has seen it, and pushed it.
        case firstHand(NodeID)
        /// Somebody repeats it.
        case hearsay
        /// It was so before this node came: the others know, and it is not repeated.
        case history
    }

    /// Believes `record` if it is news.
    mutating func learn(_ record: MemberRecord, _ source: Source, _ turn: inout Turn) {
        let id = record.member.id
        guard id != own.member.id else { return heardOfSelf(record, &turn) }
        guard case .serving = phase else { return }
        guard let held = roster[id] else { return meet(record, source, &turn) }
        if source != .own, contradictsConnection(record, held) {
            return check(Identities.Newcomer(record: record), against: held, &turn)
        }
        if record.supersedes(held) {
            if record.state == .dead, held.state.isLive, source != .own {
                return hearOfDeath(record, held, source, &turn)
            }
            return believe(record, before: held, source, &turn)
        }
        guard record == held else { return }
        if case .firstHand(let peer) = source {
            if record.state == .suspected { suspicions[id]?.accused(by: peer) }
            if record.state != .suspected { dissemination.heard(id) }
        }
    }

    /// Somebody who was not known.
    private mutating func meet(_ record: MemberRecord, _ source: Source, _ turn: inout Turn) {
        if !record.state.isLive, roster.count >= roster.countMax { return }
        let room = roster.makeRoom()
        if let forgotten = room.forgotten {
            let id = forgotten.member.id
            plan.unnamed(id)
            dissemination.forgotten(id)
            closeAll(with: id, .clusterFull, &turn)
            turn.effects.append(.forget(forgotten))
        }
        guard room.isThere else { return }
        believe(record, before: nil, source, &turn)
    }

    /// Keeps `record` and lets everything follow.
    private mutating func believe(
        _ record: MemberRecord, before: MemberRecord?, _ source: Source, _ turn: inout Turn
    ) {
        let id = record.member.id
        roster.keep(record, at: turn.now)
        turn.effects.append(.changed(record, before: before))
        dissemination.heard(id)
        if source != .history { dissemination.changed(id) }
        if source == .own { pushSoon(id, &turn) }
        suspicions[id] = nil
        if record.state == .suspected { suspect(id, source, &turn) }
        if record.state.isLive, before?.state.isLive != true {
            probing.joined(id, &turn.dice)
        }
        if record.state == .left {
            plan.unnamed(id)
        } else {
            planDials(record, &turn)
        }
    }

    /// Of two who hear of each other the one with the smaller id dials first.
    private mutating func planDials(_ record: MemberRecord, _ turn: inout Turn) {
        let half = Interval.milliseconds(500)
        let head = own.member.id < record.member.id ? Interval.zero : half
        let dueAt = turn.now + head + turn.jitter(upTo: half)
        plan.named(
            record.member.address, record.member.id, isLive: record.state.isLive, dueAt: dueAt)
        if mesh.connection(to: record.member.id) != nil { plan.connected(record.member.id) }
    }

    // MARK: Suspicion

    /// This node has waited in vain for an answer.
    mutating func accuse(_ id: NodeID, _ turn: inout Turn) {
        guard let held = roster[id] else { return }
        switch held.state {
        case .alive:
            learn(MemberRecord(held.member, held.incarnation, .suspected), .own, &turn)
        case .suspected:
            guard let suspicion = suspicions[id], !suspicion.isConfirmed else { return }
            suspicions[id]?.accused(by: own.member.id)
            pushSoon(id, &turn)
        case .dead, .left: return
        }
    }

    private mutating func suspect(_ id: NodeID, _ source: Source, _ turn: inout Turn) {
        var suspicion = Suspicion(at: turn.now, members: liveCount, settings: settings)
        switch source {
        case .own: suspicion.accused(by: own.member.id)
        case .firstHand(let peer): suspicion.accused(by: peer)
        case .hearsay, .history: break
        }
        suspicions[id] = suspicion
        // It refutes at once if it hears of it.
        if let line = mesh.connection(to: id), let record = roster[id] {
            send(.news([record]), on: line, &turn)
        }
    }

    /// Somebody has waited long enough; here the member has the least time left, and hears of it.
    private mutating func hearOfDeath(
        _ record: MemberRecord, _ held: MemberRecord, _ source: Source, _ turn: inout Turn
    ) {
        let id = record.member.id
        let suspected = MemberRecord(record.member, record.incarnation, .suspected)
        if suspected.supersedes(held) { believe(suspected, before: held, source, &turn) }
        suspicions[id]?.endedElsewhere()
        guard let deadline = suspicions[id]?.deadline, deadline <= turn.now else { return }
        bury(id, source, &turn)
    }

    mutating func endSuspicions(_ turn: inout Turn) {
        for (id, suspicion) in zip(suspicions.keys, suspicions.values)
        where suspicion.deadline <= turn.now {
            bury(id, .own, &turn)
        }
    }

    /// A suspected member had its time.
    private mutating func bury(_ id: NodeID, _ source: Source, _ turn: inout Turn) {
        guard let held = roster[id], held.state == .suspected else { return }
        believe(MemberRecord(held.member, held.incarnation, .dead), before: held, source, &turn)
        closeAll(with: id, .dead, &turn)
    }

    // MARK: Pushing

    /// Tells everybody, unless somebody else does first: the more there are, the longer the wait.
    mutating func pushSoon(_ id: NodeID, _ turn: inout Turn) {
        let spread = min(settings.pushDelayMax, .milliseconds(Int64(liveCount)))
        dissemination.push(id, at: turn.now + turn.jitter(upTo: spread))
    }

    mutating func pushDue(_ turn: inout Turn) {
        let ids = dissemination.takePushes(at: turn.now).filter { id in
            // Two more accusers than needed say nothing new.
            roster[id]?.state != .suspected
                || suspicions[id].map { !$0.isAccusedEnough(without: own.member.id) } ?? true
        }
        push(ids.compactMap { self[$0] }, &turn)
    }

    /// Tells every connected member now.
    mutating func push(_ records: [MemberRecord], _ turn: inout Turn) {
        var rest = records[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(settings.pushMax))
            rest = rest.dropFirst(settings.pushMax)
            for line in mesh.peerConnections { send(.news(part), on: line, &turn) }
        }
    }
}
