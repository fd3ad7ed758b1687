import Cluster
import Ground
import HTTPRules

/// What the access log says of a question of a peer.
extension PeerRequestHandler {
    /// What became of a question, as far as it has.
    struct LogSummary {
        let startedAt = SystemClock.now()
        /// How the cache of this node takes part in the answer.
        var part = CacheResult.none
        /// 0 while there is no answer, and of one that is none of HTTP's.
        var status: UInt16 = 0
        var bodyBytes: UInt64 = 0
    }

    /// Writes the line of a question that may have caused a fetch here; what starts nothing has
    /// none.
    func log(isComplete: Bool) {
        guard context.hasAccessLog, query.kind == .get else { return }
        let request = LoggedRequest(
            on: .peer, as: cause.id, trace: cause.trace, method: Array("GET".utf8),
            target: query.key, version: "-", startedAt: logSummary.startedAt)
        context.log(
            AccessLine(
                request, remote: connection.remote,
                milliseconds: SystemClock.wallMilliseconds(), status: logSummary.status,
                bodyBytes: logSummary.bodyBytes, outcome: logSummary.part.text,
                isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}
