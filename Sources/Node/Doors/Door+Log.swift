import Ground
import NIOCore

extension Door {
    /// Writes the access line of the answer that has just ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        hall.log(
            request,
            LoggedAnswer(
                remote: client?.remote ?? "-",
                wallTime: SystemClock.wallTime(), status: answeredStatus, bodyBytes: answeredBytes,
                outcome: part.text, isComplete: isComplete,
                took: SystemClock.now() - request.startedAt))
    }
}
