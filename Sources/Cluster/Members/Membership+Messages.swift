package import Ground

/// What peers say.
extension Membership {
    mutating func messageReceived(
        _ message: GossipMessage, on id: ConnectionID, _ turn: inout StepContext
    ) {
        guard let connection = mesh[id] else {
            // A newcomer who is not taken yet is only told that this node lives.
            if case .ping(let sequence, _) = message, identityConflicts.isPending(id) {
                send(.ack(sequence: sequence, updates: []), on: id, &turn)
            }
            // Each of two may know of a later start of the other.
            if case .updates(let news) = message, identityConflicts.outdatedConnections[id] != nil {
                for record in news where record.member.id == own.member.id {
                    ownRecordReceived(record, &turn)
                }
            }
            return
        }
        let peer = connection.peer
        if mesh.messageReceived(id, isResponse: message.isResponse, at: turn.now) {
            turn.effects.append(.useConnection(peer, id))
        }
        switch message {
        case .ping(let sequence, let news):
            merge(news, .gossip, &turn)
            send(.ack(sequence: sequence, updates: piggybackedRecords(first: peer)), on: id, &turn)
        case .ack(let sequence, let news):
            merge(news, .gossip, &turn)
            ackReceived(sequence, &turn)
        case .pingRequest(let sequence, let target, let news):
            merge(news, .gossip, &turn)
            relay(sequence, to: target, for: id, &turn)
        case .nack(let sequence):
            if probes.probe?.sequence == sequence { probes.probe?.nacks += 1 }
        case .updates(let news): merge(news, .direct(peer), &turn)
        case .table(let table, let isQuestion):
            let source = hasMemberTable ? RecordSource.gossip : .historical
            merge(table, source, &turn)
            hasMemberTable = true
            guard isQuestion, mesh[id] != nil else { return }
            // The peer's table came with its question.
            mesh.scheduleTableRequest(mesh.connection(to: peer) ?? id, at: nil)
            send(.table(records, isRequest: false), on: id, &turn)
        }
    }

    private mutating func merge(
        _ news: [MemberRecord], _ source: RecordSource, _ turn: inout StepContext
    ) {
        for record in news.prefix(settings.membersMax) { merge(record, source, &turn) }
    }

    /// An ack has come for what was asked under `sequence`, if that still matters.
    private mutating func ackReceived(_ sequence: UInt32, _ turn: inout StepContext) {
        if case .leaving(let until, var waiting) = phase {
            waiting[sequence] = nil
            phase = .leaving(until: until, waiting: waiting)
            if waiting.isEmpty { finishLeaving(&turn) }
            return
        }
        if probes.probe?.sequence == sequence {
            probes.probe = nil
            health.improved()
        } else if let relay = relays.ackReceived(sequence) {
            send(
                .ack(sequence: relay.requestSequence, updates: piggybackedRecords()),
                on: relay.requester, &turn)
        } else {
            identityCheckAcked(sequence, &turn)
        }
    }

    /// Pings `target` for the peer at the other end of `asker`.
    private mutating func relay(
        _ askedSequence: UInt32, to target: NodeID, for requester: ConnectionID,
        _ turn: inout StepContext
    ) {
        guard relays.hasRoom, let line = mesh.connection(to: target) else {
            return send(.nack(sequence: askedSequence), on: requester, &turn)
        }
        let sequence = nextSequence()
        // Before the asker's own time-out for those it asks (Lifeguard §IV.A).
        let patience = Interval(nanoseconds: settings.probeTimeout.nanoseconds / 5 * 4)
        let relay = Relays.Relay(
            requester: requester, requestSequence: askedSequence, nackAt: turn.now + patience,
            forgetAt: turn.now + settings.probeInterval)
        relays.add(relay, sequence: sequence)
        send(.ping(sequence: sequence, updates: piggybackedRecords(first: target)), on: line, &turn)
    }
}

/// What members say to each other of who is here (SWIM: Das, Gupta, Motivala, DSN 2002; Lifeguard:
/// Dadgar, Phillips, Currey, 2017).
package enum GossipMessage: Hashable, Sendable {
    /// Answer this; `sequence` is repeated in the answer.
    case ping(sequence: UInt32, updates: [MemberRecord])
    /// Answers a ping, one's own or one that another member asked for.
    case ack(sequence: UInt32, updates: [MemberRecord])
    /// Ping `target` for me, and pass on its answer as an ack.
    case pingRequest(sequence: UInt32, target: NodeID, updates: [MemberRecord])
    /// Answers a ping request in time when the target did not: who asked knows that its own line
    /// is well (Lifeguard).
    case nack(sequence: UInt32)
    /// Something has changed.
    case updates([MemberRecord])
    /// All that is known; who gets it as a question answers with what it knows.
    case table([MemberRecord], isRequest: Bool)
}

extension GossipMessage {
    /// It was asked for, and comes where it was.
    var isResponse: Bool {
        switch self {
        case .ack, .nack, .table(_, isRequest: false): true
        case .ping, .pingRequest, .updates, .table(_, isRequest: true): false
        }
    }
}
