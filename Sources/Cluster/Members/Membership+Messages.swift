package import Ground

/// Handling of received messages.
extension Membership {
    /// Handles a message that arrived on the connection `id`.
    mutating func messageReceived(
        _ message: GossipMessage, on id: ConnectionID, _ turn: inout StepContext
    ) {
        guard let connection = mesh[id] else {
            // A claimant that is not yet admitted only learns that this node is alive.
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
            // The peer's table came with its request.
            mesh.scheduleTableRequest(mesh.connection(to: peer) ?? id, at: nil)
            send(.table(records, isRequest: false), on: id, &turn)
        }
    }

    private mutating func merge(
        _ news: [MemberRecord], _ source: RecordSource, _ turn: inout StepContext
    ) {
        for record in news.prefix(settings.membersMax) { merge(record, source, &turn) }
    }

    /// Handles an ack for `sequence`, if that is still outstanding.
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

    /// Pings `target` on behalf of the peer at the other end of `requester`.
    private mutating func relay(
        _ askedSequence: UInt32, to target: NodeID, for requester: ConnectionID,
        _ turn: inout StepContext
    ) {
        guard relays.hasRoom, let line = mesh.connection(to: target) else {
            return send(.nack(sequence: askedSequence), on: requester, &turn)
        }
        let sequence = nextSequence()
        // Earlier than the requester's own time-out for indirect probes (Lifeguard §IV.A).
        let patience = Interval(nanoseconds: settings.probeTimeout.nanoseconds / 5 * 4)
        let relay = Relays.Relay(
            requester: requester, requestSequence: askedSequence, nackAt: turn.now + patience,
            forgetAt: turn.now + settings.probeInterval)
        relays.add(relay, sequence: sequence)
        send(.ping(sequence: sequence, updates: piggybackedRecords(first: target)), on: line, &turn)
    }
}

/// A membership message between members (SWIM: Das, Gupta, Motivala, DSN 2002; Lifeguard: Dadgar,
/// Phillips, Currey, 2017).
///
/// Most carry piggybacked member records.
package enum GossipMessage: Hashable, Sendable {
    /// A probe; the receiver replies with an ack that repeats `sequence`.
    case ping(sequence: UInt32, updates: [MemberRecord])
    /// The reply to a ping, direct or relayed for another member.
    case ack(sequence: UInt32, updates: [MemberRecord])
    /// A request to ping `target` and to pass on its reply as an ack.
    case pingRequest(sequence: UInt32, target: NodeID, updates: [MemberRecord])
    /// The timely reply to a ping request whose target did not respond; it proves to the requester
    /// that its own connection works (Lifeguard).
    case nack(sequence: UInt32)
    /// First-hand changes.
    case updates([MemberRecord])
    /// All records that the sender holds; the receiver of a request replies with its own.
    case table([MemberRecord], isRequest: Bool)
}

extension GossipMessage {
    /// True for a reply, which arrives on the connection of its request.
    var isResponse: Bool {
        switch self {
        case .ack, .nack, .table(_, isRequest: false): true
        case .ping, .pingRequest, .updates, .table(_, isRequest: true): false
        }
    }
}
