package import Ground

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
