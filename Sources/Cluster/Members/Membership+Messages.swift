import Ground

/// What peers say.
extension Membership {
    mutating func received(
        _ message: GossipMessage, on id: ConnectionID, _ turn: inout Turn
    ) {
        guard let connection = mesh[id] else {
            // A newcomer who is not taken yet is only told that this node lives.
            if case .ping(let sequence, _) = message, identities.isHeld(id) {
                send(.ack(sequence: sequence, news: []), on: id, &turn)
            }
            // Each of two may know of a later start of the other.
            if case .news(let news) = message, identities.outdated[id] != nil {
                for record in news where record.member.id == own.member.id {
                    heardOfSelf(record, &turn)
                }
            }
            return
        }
        let peer = connection.peer
        if mesh.heard(id, isAnswer: message.isAnswer, at: turn.now) {
            turn.effects.append(.useConnection(peer, id))
        }
        switch message {
        case .ping(let sequence, let news):
            learn(news, .hearsay, &turn)
            send(.ack(sequence: sequence, news: riders(first: peer)), on: id, &turn)
        case .ack(let sequence, let news):
            learn(news, .hearsay, &turn)
            answered(sequence, &turn)
        case .pingRequest(let sequence, let target, let news):
            learn(news, .hearsay, &turn)
            relay(sequence, to: target, for: id, &turn)
        case .nack(let sequence):
            if probing.probe?.sequence == sequence { probing.probe?.nacks += 1 }
        case .news(let news): learn(news, .firstHand(peer), &turn)
        case .table(let table, let isQuestion):
            let source = hasTable ? Source.hearsay : .history
            learn(table, source, &turn)
            hasTable = true
            guard isQuestion, mesh[id] != nil else { return }
            // The peer's table came with its question.
            mesh.question(mesh.connection(to: peer) ?? id, at: nil)
            send(.table(records, isQuestion: false), on: id, &turn)
        }
    }

    private mutating func learn(_ news: [MemberRecord], _ source: Source, _ turn: inout Turn) {
        for record in news.prefix(settings.membersMax) { learn(record, source, &turn) }
    }

    /// An ack has come for what was asked under `sequence`, if that still matters.
    private mutating func answered(_ sequence: UInt32, _ turn: inout Turn) {
        if case .leaving(let until, var waiting) = phase {
            waiting[sequence] = nil
            phase = .leaving(until: until, waiting: waiting)
            if waiting.isEmpty { finishLeaving(&turn) }
            return
        }
        if probing.probe?.sequence == sequence {
            probing.probe = nil
            health.improved()
        } else if let relay = relays.answered(sequence) {
            send(.ack(sequence: relay.askedSequence, news: riders()), on: relay.asker, &turn)
        } else {
            identityAnswered(sequence, &turn)
        }
    }

    /// Pings `target` for the peer at the other end of `asker`.
    private mutating func relay(
        _ askedSequence: UInt32, to target: NodeID, for asker: ConnectionID, _ turn: inout Turn
    ) {
        guard relays.hasRoom, let line = mesh.connection(to: target) else {
            return send(.nack(sequence: askedSequence), on: asker, &turn)
        }
        let sequence = nextSequence()
        // Before the asker's own time-out for those it asks (Lifeguard §IV.A).
        let patience = Interval(nanoseconds: settings.probeTimeout.nanoseconds / 5 * 4)
        let relay = Relays.Relay(
            asker: asker, askedSequence: askedSequence, nackAt: turn.now + patience,
            forgetAt: turn.now + settings.probeInterval)
        relays.add(relay, sequence: sequence)
        send(.ping(sequence: sequence, news: riders(first: target)), on: line, &turn)
    }
}
