import Ground

/// Opening and closing of connections.
extension Membership {
    /// Handles a new connection whose hellos were exchanged.
    mutating func connectionOpened(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout StepContext
    ) {
        let member = record.member
        guard case .serving = phase else {
            turn.effects.append(.close(id, .leaving))
            return
        }
        guard member.id != own.member.id else {
            if let dialled { dialSchedule.dialedSelf(dialled, at: turn.now) }
            return identityConflicts.duplicateConnected(
                id, member.process, isMember: hasMemberTable, &turn)
        }
        if let dialled { dialSchedule.dialSucceeded(dialled, member.id, at: turn.now) }
        if let held = members[member.id], held.member.process != member.process {
            if mesh.process(of: member.id) == held.member.process {
                let newcomer = IdentityConflicts.Claimant(
                    connection: id, dialled: dialled, record: record)
                return checkIdentity(newcomer, against: held, &turn)
            }
            if held.supersedes(record) {
                // Send nothing else to a process that may have made promises that it cannot
                // keep.
                turn.effects.append(.send(.updates([held]), on: id))
                identityConflicts.addOutdated(id, at: turn.now)
                return
            }
        }
        admit(id, dialled: dialled, record, &turn)
    }

    /// Makes the connection the one with its member.
    mutating func admit(
        _ id: ConnectionID, dialled: PeerAddress?, _ record: MemberRecord, _ turn: inout StepContext
    ) {
        let peer = record.member.id
        let before = members[peer]
        merge(record, .local, &turn)
        guard members[peer] != nil else {
            turn.effects.append(.refuseMember(record.member))
            turn.effects.append(.close(id, .clusterFull))
            if let dialled { dialSchedule.dialRefused(dialled, at: turn.now) }
            return
        }
        let isKnown = before.map { $0.state.isLive && $0.member.process == record.member.process }
        // Two live members that know of each other have nothing to exchange; but after a broken
        // connection it is unknown what was lost.
        let isToAsk = isKnown != true || !hasMemberTable || members.wasConnected(peer)
        members.markConnected(peer)
        let connection = Mesh.Connection(
            peer: peer, process: record.member.process, dialled: dialled)
        let opening = mesh.opened(id, connection)
        if isToAsk {
            mesh.scheduleTableRequest(
                id, at: turn.now + (dialled == nil ? settings.tableRequestDelay : .zero))
        }
        turn.effects.append(.useConnection(peer, id))
        if case .replacingProcess(let former) = opening {
            for line in former { turn.effects.append(.close(line, .superseded)) }
        }
        dialSchedule.connected(peer)
        // A peer that is believed dead must learn so to refute it; if it does not respond, the
        // connection is closed. Beside a spare, the ping shows the peer which connection this node
        // uses.
        let isTold = opening == .withSpare && mesh.isDecider(for: peer)
        if isTold || members[peer]?.state == .dead {
            send(
                .ping(sequence: turn.nextSequence(), updates: piggybackedRecords(first: peer)),
                on: id,
                &turn)
        }
    }

    /// Handles a connection that the peer has closed or that broke.
    mutating func connectionClosed(
        _ id: ConnectionID, _ reason: CloseReason?, _ turn: inout StepContext
    ) {
        let isTwin = identityConflicts.connectionClosed(id)
        guard mesh[id] != nil || isTwin else { return }
        if reason == .duplicateIdentity { return refuseToServe(.duplicateIdentity, &turn) }
        if reason == .clusterFull, let dialled = mesh[id]?.dialled {
            connectionLost(mesh.closed(id), isHint: false, &turn)
            return dialSchedule.dialRefused(dialled, at: turn.now)
        }
        connectionLost(mesh.closed(id), isHint: reason != .leaving, &turn)
    }

    /// Closes all connections with a member.
    mutating func closeAll(with peer: NodeID, _ reason: CloseReason, _ turn: inout StepContext) {
        // Spares first, so that none replaces the one in use.
        for line in mesh.spares(with: peer) { close(line, reason, &turn) }
        if let line = mesh.connection(to: peer) { close(line, reason, &turn) }
    }

    /// Closes a connection of the mesh.
    mutating func close(_ id: ConnectionID, _ reason: CloseReason, _ turn: inout StepContext) {
        guard mesh[id] != nil else { return }
        turn.effects.append(.close(id, reason))
        connectionLost(mesh.closed(id), isHint: reason == .silent, &turn)
    }

    /// Handles the loss of a connection; `isHint` probes the member next, as it may be dead.
    private mutating func connectionLost(
        _ loss: Mesh.CloseOutcome, isHint: Bool, _ turn: inout StepContext
    ) {
        switch loss {
        case .none: return
        case .replaced(let peer, let id):
            turn.effects.append(.useConnection(peer, id))
            mesh.scheduleTableRequest(id, at: turn.now)
        case .disconnected(let peer):
            turn.effects.append(.dropConnection(peer))
            dialSchedule.disconnected(peer, &turn)
            identityConflicts.disconnected(peer, at: turn.now)
            if isHint, members.isLive(peer) { detector.order.prioritize(peer) }
        }
    }

    // MARK: Tables

    /// Sends this node's table to the peer and requests the peer's.
    mutating func requestTable(_ id: ConnectionID, _ turn: inout StepContext) {
        mesh.scheduleTableRequest(id, at: nil)
        tables.requested(at: turn.now)
        send(.table(records, isRequest: true), on: id, &turn)
    }

    /// Exchanges tables with a random peer when that is due.
    mutating func exchangeTables(_ turn: inout StepContext) {
        guard tables.takeDue(members: liveCount, &turn),
            let id = mesh.peerConnections.randomElement(using: &turn.dice)
        else { return }
        requestTable(id, &turn)
    }
}
