import Ground
import Logging
import Origin
import Wire

extension OriginEvent {
    /// Tells the readers of the log of it.
    func log(to logger: Logger) {
        switch self {
        case .circuitChanged(let origin, .opened(let failures, let pause)):
            logger.warning(
                "origin left alone: it fails again and again",
                metadata: [
                    "origin": "\(origin)", "failures": "\(failures)",
                    "seconds": "\(pause.seconds)",
                ])
        case .circuitChanged(let origin, .closed):
            logger.info("origin answers again", metadata: ["origin": "\(origin)"])
        case .tlsFailed(let origin, let failure):
            logger.warning(
                "no TLS connection to an origin",
                metadata: ["origin": "\(origin)", "why": "\(failure.message)"])
        case .tlsSucceeded(let origin):
            logger.info("TLS connection to an origin again", metadata: ["origin": "\(origin)"])
        case .responseOverran(let origin):
            logger.warning(
                "origin sends more than the length of its answers; its connections are closed",
                metadata: ["origin": "\(origin)"])
        case .lookupFailed(let host, let reason):
            logger.warning(
                "name look-up failed; using the addresses known last",
                metadata: ["host": "\(host)", "why": "\(reason)"])
        }
    }
}
