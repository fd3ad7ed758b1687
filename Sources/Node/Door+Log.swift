import Ground
import NIOCore

extension Door {
    /// Keeps the client's address, which is not known any more when the last line is written.
    func noteRemote(of channel: any Channel) {
        remote = channel.remoteAddress?.ipAddress ?? "-"
    }

    /// Writes the access line of the answer that has just ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        hall.log(
            request,
            LoggedAnswer(
                remote: remote,
                wallTime: SystemClock.wallTime(), status: answeredStatus, bodyBytes: answeredBytes,
                outcome: part.text, isComplete: isComplete,
                took: SystemClock.now() - request.startedAt))
    }
}
