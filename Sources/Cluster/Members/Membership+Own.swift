import Ground

/// What this node says of itself.
extension Membership {
    /// Takes in what others believe of this node.
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

    /// Says that this process lives, above `incarnation`.
    mutating func refute(above incarnation: Incarnation, _ turn: inout StepContext) {
        let before = own
        own.incarnation = max(own.incarnation, incarnation).raised
        announceOwn(before: before, &turn)
    }

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

    /// Says that it goes, and waits until everybody connected has acknowledged it.
    mutating func leave(_ turn: inout StepContext) {
        guard case .serving = phase else { return }
        let before = own
        own.state = .left
        turn.effects.append(.memberChanged(own, before: before))
        var waiting: [UInt32: NodeID] = [:]
        for (peer, line) in zip(mesh.peers, mesh.peerConnections) {
            let sequence = nextSequence()
            waiting[sequence] = peer
            // First-hand, then a question whose answer says that it was read.
            send(.updates([own]), on: line, &turn)
            send(.ping(sequence: sequence, updates: []), on: line, &turn)
        }
        phase = .leaving(until: turn.now + settings.leaveTimeout, waiting: waiting)
        if waiting.isEmpty { finishLeaving(&turn) }
    }

    mutating func finishLeaving(_ turn: inout StepContext) {
        guard case .leaving(_, let waiting) = phase else { return }
        phase = .ended
        turn.effects.append(.finishLeaving(unacknowledged: waiting.values.sorted()))
    }
}
