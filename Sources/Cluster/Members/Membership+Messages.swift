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
            if case .updates(let news) = message, identityConflicts.isOutdated(id) {
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
            send([detector.relay(sequence, to: target, for: id, mesh, &turn)], &turn)
        case .nack(let sequence): detector.nackReceived(sequence)
        case .updates(let news): merge(news, .direct(peer), &turn)
        case .table(let table, let isQuestion):
            let source = hasMemberTable ? RecordSource.gossip : .historical
            merge(table, source, &turn)
            tables.received()
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
        guard let messages = detector.ackReceived(sequence) else {
            return identityCheckAcked(sequence, &turn)
        }
        send(messages, &turn)
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
