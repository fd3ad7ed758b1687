import Ground

/// Connections that open and close.
extension Membership {
    mutating func opened(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout Turn
    ) {
        let member = record.member
        guard case .serving = phase else {
            turn.effects.append(.close(id, .leaving))
            return
        }
        guard member.id != own.member.id else {
            return openedToOwnID(id, dialled: dialled, record, &turn)
        }
        if let dialled { plan.opened(dialled, member.id, at: turn.now) }
        if let held = roster[member.id], held.member.process != member.process {
            if mesh.process(of: member.id) == held.member.process {
                let newcomer = Identities.Newcomer(connection: id, dialled: dialled, record: record)
                return check(newcomer, against: held, &turn)
            }
            if held.supersedes(record) {
                // Nothing is answered to one that may have promised what it does not have.
                turn.effects.append(.send(.news([held]), on: id))
                identities.outdated[id] = turn.now + settings.probeTimeout
                return
            }
        }
        admit(id, dialled: dialled, record, &turn)
    }

    /// Takes the connection as the one with its member.
    mutating func admit(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout Turn
    ) {
        let peer = record.member.id
        let before = roster[peer]
        learn(record, .own, &turn)
        guard roster[peer] != nil else {
            turn.effects.append(.refuseMember(record.member))
            turn.effects.append(.close(id, .clusterFull))
            if let dialled { plan.refused(dialled, at: turn.now) }
            return
        }
        let isKnown = before.map { $0.state.isLive && $0.member.process == record.member.process }
        // Between two live members who have heard of each other there is nothing to exchange; but
        // what a broken connection has lost is not known.
        let isToAsk = isKnown != true || !hasTable || roster.wasConnected(peer)
        roster.connected(peer)
        let connection = Mesh.Connection(
            peer: peer, process: record.member.process, dialled: dialled)
        let opening = mesh.opened(id, connection)
        if isToAsk {
            mesh.question(id, at: turn.now + (dialled == nil ? settings.questionDelay : .zero))
        }
        turn.effects.append(.useConnection(peer, id))
        if case .succeeding(let former) = opening {
            for line in former { turn.effects.append(.close(line, .superseded)) }
        }
        plan.connected(peer)
        // One that is believed dead is to hear so and refute; if it does not answer, the connection
        // is not kept. Beside a spare the peer is told where this node speaks.
        let isTold = opening == .besideSpare && mesh.decides(peer)
        if isTold || roster[peer]?.state == .dead {
            send(.ping(sequence: nextSequence(), news: riders(first: peer)), on: id, &turn)
        }
    }

    /// The peer closed it, or it broke.
    mutating func closed(_ id: ConnectionID, _ reason: CloseReason?, _ turn: inout Turn) {
        let isTwin = identities.closed(id)
        guard mesh[id] != nil || isTwin else { return }
        if reason == .duplicateIdentity { return refuseToServe(.twin, &turn) }
        if reason == .clusterFull, let dialled = mesh[id]?.dialled {
            lost(mesh.closed(id), isHint: false, &turn)
            return plan.refused(dialled, at: turn.now)
        }
        lost(mesh.closed(id), isHint: reason != .leaving, &turn)
    }

    /// Closes everything that is open with a member.
    mutating func closeAll(with peer: NodeID, _ reason: CloseReason, _ turn: inout Turn) {
        // Spares first: none takes the place of the one in use.
        for line in mesh.spares(with: peer) { close(line, reason, &turn) }
        if let line = mesh.connection(to: peer) { close(line, reason, &turn) }
    }

    /// Closes a connection of the mesh.
    mutating func close(_ id: ConnectionID, _ reason: CloseReason, _ turn: inout Turn) {
        guard mesh[id] != nil else { return }
        turn.effects.append(.close(id, reason))
        lost(mesh.closed(id), isHint: reason == .silent, &turn)
    }

    /// If the loss is a hint that the member may be gone, it is probed next.
    private mutating func lost(_ loss: Mesh.Loss, isHint: Bool, _ turn: inout Turn) {
        switch loss {
        case .none: return
        case .replaced(let peer, let id):
            turn.effects.append(.useConnection(peer, id))
            mesh.question(id, at: turn.now)
        case .disconnected(let peer):
            turn.effects.append(.dropConnection(peer))
            plan.disconnected(peer, &turn)
            identities.checks[peer]?.endsAt = turn.now
            if isHint, roster.isLive(peer) { probing.hurry(peer) }
        }
    }

    // MARK: Tables

    /// Asks for the peer's table with one's own.
    mutating func ask(_ id: ConnectionID, _ turn: inout Turn) {
        mesh.question(id, at: nil)
        if hasTable { nextQuestion = turn.now + settings.questionInterval }
        send(.table(records, isQuestion: true), on: id, &turn)
    }

    /// Asks somebody now and then, to repair what was missed; in a big cluster less often, since
    /// tables are longer and other nodes ask too.
    mutating func exchange(_ turn: inout Turn) {
        guard nextExchange <= turn.now else { return }
        var interval = settings.exchangeInterval
        var count = liveCount
        while count > 32 {
            interval = interval + settings.exchangeInterval
            count /= 2
        }
        nextExchange = turn.now + interval + turn.jitter(upTo: .seconds(1))
        guard let id = mesh.peerConnections.randomElement(using: &turn.dice) else { return }
        ask(id, &turn)
    }
}
