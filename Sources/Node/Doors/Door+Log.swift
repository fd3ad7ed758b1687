import Ground
import HTTPRules
import NIOCore

extension RequestHandler {
    /// Writes the access line of the answer that has just ended.
    func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        context.log(
            AccessLine(
                request, remote: forwarding?.client.map { "\($0)" } ?? client?.remote ?? "-",
                milliseconds: SystemClock.wallMilliseconds(), status: responseStatus,
                bodyBytes: responseBodyBytes, outcome: cacheResult.text, isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}
