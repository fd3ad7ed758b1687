import Origin
import Telemetry

/// What a loop counts of its fetches.
extension EventLoopContext {
    /// A fetch from an origin brought no whole answer.
    func count(_ failure: OriginFailure) {
        counters.add(.originFetchesFailed)
        counters.add(failure.underlying.metric)
        guard case .timedOut(let phase, limit: _) = failure.underlying else { return }
        switch phase {
        case .resolving, .connecting, .handshaking: counters.add(.timeoutsOriginConnect)
        case .awaitingHead: counters.add(.timeoutsOriginFirstByte)
        case .readingBody, .readingSlowly: counters.add(.timeoutsOriginIdle)
        case .total: counters.add(.timeoutsOriginTotal)
        }
    }
}

extension OriginFailure {
    /// What it is counted as by its reason.
    fileprivate var metric: Metric {
        switch self {
        case .originNotAllowed, .addressRefused: .originFailuresNotAllowed
        case .nameNotFound, .resolverFailed: .originFailuresName
        case .connectFailed: .originFailuresConnect
        case .tls: .originFailuresTLS
        case .timedOut: .originFailuresTimeout
        case .closedBeforeResponse, .truncated, .reset, .closedWithoutNotify: .originFailuresBroken
        case .http2, .contentLengthExceeded, .malformed, .headTooLarge, .tooManyInterimResponses:
            .originFailuresProtocol
        case .bodyTooLarge: .originFailuresTooLarge
        case .tooManyRedirects, .redirectLoop, .redirectRefused: .originFailuresRedirects
        case .redirected(_, let failure): failure.metric
        case .circuitOpen: .originFailuresCircuit
        case .overloaded: .originFailuresLimit
        case .shuttingDown: .originFailuresStopping
        }
    }
}
