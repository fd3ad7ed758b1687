package import Ground

/// What members say to each other of who is here (SWIM: Das, Gupta, Motivala, DSN 2002; Lifeguard:
/// Dadgar, Phillips, Currey, 2017).
package enum GossipMessage: Hashable, Sendable {
    /// Answer this; `sequence` is repeated in the answer.
    case ping(sequence: UInt32, news: [MemberRecord])
    /// Answers a ping, one's own or one that another member asked for.
    case ack(sequence: UInt32, news: [MemberRecord])
    /// Ping `target` for me, and pass on its answer as an ack.
    case pingRequest(sequence: UInt32, target: NodeID, news: [MemberRecord])
    /// Answers a ping request in time when the target did not: who asked knows that its own line
    /// is well (Lifeguard).
    case nack(sequence: UInt32)
    /// Something has changed.
    case news([MemberRecord])
    /// All that is known; who gets it as a question answers with what it knows.
    case table([MemberRecord], isQuestion: Bool)
}

extension GossipMessage {
    /// It was asked for, and comes where it was.
    var isAnswer: Bool {
        switch self {
        case .ack, .nack, .table(_, isQuestion: false): true
        case .ping, .pingRequest, .news, .table(_, isQuestion: true): false
        }
    }
}
