import Ground

/// Conflicts between two processes with one node id; see ``IdentityConflicts``.
extension Membership {
    /// Probes the connected earlier process, of the record `held`, before `newcomer` replaces it.
    ///
    /// In a check that is in progress the newcomer competes with the claimant instead.
    mutating func checkIdentity(
        _ newcomer: IdentityConflicts.Claimant, _ held: MemberRecord, _ turn: inout StepContext
    ) {
        guard !identityConflicts.addClaimant(newcomer, &turn),
            let connection = mesh.connection(to: held.member.id)
        else { return }
        let sequence = turn.nextSequence()
        identityConflicts.start(
            IdentityConflicts.Check(
                claimant: newcomer, earlier: held.member, sequence: sequence,
                endsAt: turn.now + detector.health.scaled(settings.probeTimeout)))
        send(.ping(sequence: sequence, updates: []), on: connection, &turn)
    }

    /// Refuses the newcomer of a check whose earlier process has responded; if it was only
    /// reported, sends its record to that process, which then refutes it.
    mutating func identityCheckAcked(_ sequence: UInt32, _ turn: inout StepContext) {
        guard let newcomer = identityConflicts.takeRefuted(sequence) else { return }
        if let connection = newcomer.connection {
            turn.effects.append(.close(connection, .duplicateIdentity))
        } else if let connection = mesh.connection(to: newcomer.record.member.id) {
            send(.updates([newcomer.record]), on: connection, &turn)
        }
    }

    /// Replaces earlier processes that did not respond in time by the newcomers; also closes
    /// overdue connections of duplicates, which may end this process's membership, and outdated
    /// ones.
    mutating func expireIdentityChecks(_ turn: inout StepContext) {
        for check in identityConflicts.takeUnanswered(at: turn.now) {
            let newcomer = check.claimant
            if mesh.isConnected(with: check.earlier) {
                closeAll(with: check.earlier.id, .superseded, &turn)
            }
            if let connection = newcomer.connection {
                admit(connection, dialled: newcomer.dialled, newcomer.record, &turn)
            } else {
                merge(newcomer.record, .gossip, &turn)
            }
        }
        if identityConflicts.closeOverdue(&turn) { refuseToServe(.duplicateIdentity, &turn) }
    }

    /// Ends this process's membership, closes its connections and stops it from serving.
    mutating func refuseToServe(_ why: MembershipEffect.ServingRefusal, _ turn: inout StepContext) {
        phase = .ended
        for id in mesh.connections.keys { turn.effects.append(.close(id, .leaving)) }
        turn.effects.append(.refuseToServe(why))
    }
}
