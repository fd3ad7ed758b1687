import Cluster
import Ground
import HTTPRules

/// What the access log says of a question of a peer.
extension PeerAnswering {
    /// What became of a question, as far as it has.
    struct Result {
        let startedAt = SystemClock.now()
        /// How the cache of this node takes part in the answer.
        var part = CachePart.none
        /// 0 while there is no answer, and of one that is none of HTTP's.
        var status: UInt16 = 0
        var bodyBytes: UInt64 = 0
    }

    /// Writes the line of a question that may have caused a fetch here; what starts nothing has
    /// none.
    func log(isComplete: Bool) {
        guard hall.hasAccessLog, question.kind == .get else { return }
        let request = LoggedRequest(
            on: .peer, as: cause.id, trace: cause.trace, method: Array("GET".utf8),
            target: question.key, version: "-", startedAt: result.startedAt)
        hall.log(
            AccessLine(
                request, remote: connection.remote,
                milliseconds: SystemClock.wallMilliseconds(), status: result.status,
                bodyBytes: result.bodyBytes, outcome: result.part.text, isComplete: isComplete,
                took: SystemClock.now() - request.startedAt))
    }
}
