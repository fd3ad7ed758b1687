import Ground

/// Opening and closing of connections.
extension Membership {
    /// Admits a new connection whose hellos were exchanged, unless two processes claim one node id.
    ///
    /// A second process of this node or of a connected member waits until that is resolved; one
    /// earlier than the recorded process is only sent that record.
    mutating func connectionOpened(
        _ id: ConnectionID, _ dialled: PeerAddress?, _ record: MemberRecord,
        _ turn: inout StepContext
    ) {
        let member = record.member
        guard member.id != own.member.id else {
            if let dialled { dialSchedule.dialedSelf(dialled, at: turn.now) }
            return identityConflicts.duplicateConnected(
                id, member.process, isMember: hasMemberTable, &turn)
        }
        if let dialled { dialSchedule.dialSucceeded(dialled, member.id, at: turn.now) }
        if let held = members[member.id], held.member.process != member.process {
            if mesh.isConnected(with: held.member) {
                let newcomer = IdentityConflicts.Claimant(
                    connection: id, dialled: dialled, record: record)
                return checkIdentity(newcomer, held, &turn)
            }
            if held.supersedes(record) {
                // Nothing else is sent to a process that may have made promises that it cannot
                // keep.
                turn.effects.append(.send(.updates([held]), on: id))
                return identityConflicts.addOutdated(id, at: turn.now)
            }
        }
        admit(id, dialled: dialled, record, &turn)
    }

    /// Makes the connection the one in use with its member; closes it if the cluster is full.
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
        let needsTable = isKnown != true || !hasMemberTable || members.wasConnected(peer)
        members.markConnected(peer)
        let connection = Mesh.Connection(
            peer: peer, process: record.member.process, dialled: dialled)
        let opening = mesh.opened(id, connection)
        if needsTable {
            mesh.scheduleTableRequest(
                id, at: turn.now + (dialled == nil ? settings.tableRequestDelay : .zero))
        }
        turn.effects.append(.useConnection(peer, id))
        if case .replacingProcess(let former) = opening {
            for connection in former { turn.effects.append(.close(connection, .superseded)) }
        }
        dialSchedule.connected(peer)
        // A peer that is believed dead must learn so to refute it; if it does not respond, the
        // connection is closed. Beside a spare, the ping shows the peer which connection this node
        // uses.
        let showsChoice = opening == .withSpare && mesh.isDecider(for: peer)
        if showsChoice || members[peer]?.state == .dead {
            let updates = piggybackedRecords(first: peer)
            send(.ping(sequence: turn.nextSequence(), updates: updates), on: id, &turn)
        }
    }

    /// Handles a closed or broken connection; a peer's claim of this node's id ends the membership.
    mutating func connectionClosed(
        _ id: ConnectionID, _ reason: CloseReason?, _ turn: inout StepContext
    ) {
        let isPending = identityConflicts.connectionClosed(id)
        let connection = mesh[id]
        guard connection != nil || isPending else { return }
        if reason == .duplicateIdentity { return refuseToServe(.duplicateIdentity, &turn) }
        let refuser = reason == .clusterFull ? connection?.dialled : nil
        connectionLost(mesh.closed(id), isHint: reason != .leaving && refuser == nil, &turn)
        if let refuser { dialSchedule.dialRefused(refuser, at: turn.now) }
    }

    /// Closes all connections with a member.
    mutating func closeAll(with peer: NodeID, _ reason: CloseReason, _ turn: inout StepContext) {
        // Spares first, so that none replaces the one in use.
        for connection in mesh.spares(with: peer) { close(connection, reason, &turn) }
        if let connection = mesh.connection(to: peer) { close(connection, reason, &turn) }
    }

    /// Closes a connection of the mesh; ignores any other.
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
}
