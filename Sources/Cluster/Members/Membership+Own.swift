import Ground

/// What this node says of itself.
extension Membership {
    /// Takes in what others believe of this node.
    mutating func heardOfSelf(_ record: MemberRecord, _ turn: inout Turn) {
        guard case .serving = phase else { return }
        guard record.member.process == own.member.process else {
            return heardOfTwin(record, &turn)
        }
        guard record.incarnation >= own.incarnation else { return }
        if record.state == .alive, record.incarnation == own.incarnation { return }
        if record.state != .alive { health.worsened() }
        speakUp(above: record.incarnation, &turn)
    }

    /// Says that this process lives, above `incarnation`.
    mutating func speakUp(above incarnation: Incarnation, _ turn: inout Turn) {
        let before = own
        own.incarnation = max(own.incarnation, incarnation).raised
        tellOwn(before: before, &turn)
    }

    mutating func changeRole(_ role: Member.Role, _ turn: inout Turn) {
        guard case .serving = phase, role != own.member.role else { return }
        let before = own
        own.member.role = role
        own.incarnation = own.incarnation.raised
        tellOwn(before: before, &turn)
    }

    private mutating func tellOwn(before: MemberRecord, _ turn: inout Turn) {
        turn.effects.append(.changed(own, before: before))
        dissemination.changed(own.member.id)
        push([own], &turn)
    }

    // MARK: Leaving

    /// Says that it goes, and waits until everybody connected has acknowledged it.
    mutating func leave(_ turn: inout Turn) {
        guard case .serving = phase else { return }
        let before = own
        own.state = .left
        turn.effects.append(.changed(own, before: before))
        var waiting: [UInt32: NodeID] = [:]
        for (peer, line) in zip(mesh.peers, mesh.peerConnections) {
            let sequence = nextSequence()
            waiting[sequence] = peer
            // First-hand, then a question whose answer says that it was read.
            send(.news([own]), on: line, &turn)
            send(.ping(sequence: sequence, news: []), on: line, &turn)
        }
        phase = .leaving(until: turn.now + settings.leavePatience, waiting: waiting)
        if waiting.isEmpty { finishLeaving(&turn) }
    }

    mutating func finishLeaving(_ turn: inout Turn) {
        guard case .leaving(_, let waiting) = phase else { return }
        phase = .over
        turn.effects.append(.finishLeaving(untold: waiting.values.sorted()))
    }
}
