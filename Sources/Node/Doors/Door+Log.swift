import Ground
import HTTPRules
import NIOCore

extension Door {
    /// Writes the access line of the answer that has just ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        hall.log(
            AccessLine(
                request, remote: forwarding?.client.map { "\($0)" } ?? client?.remote ?? "-",
                milliseconds: SystemClock.wallMilliseconds(), status: answeredStatus,
                bodyBytes: answeredBytes, outcome: part.text, isComplete: isComplete,
                took: SystemClock.now() - request.startedAt))
    }
}
