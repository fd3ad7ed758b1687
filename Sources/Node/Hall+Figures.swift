import Origin
import Telemetry

/// What a loop counts of its fetches.
extension Hall {
    /// A fetch from an origin brought no whole answer.
    func count(_ failure: OriginFailure) {
        counters.add(.originFetchesFailed)
        counters.add(failure.root.metric)
        guard case .timedOut(let phase, limit: _) = failure.root else { return }
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
        case .closedBeforeAnswer, .truncated, .reset, .endedWithoutNotify: .originFailuresBroken
        case .http2, .overlong, .malformed, .headTooLarge, .tooManyInterimAnswers:
            .originFailuresProtocol
        case .bodyTooLarge: .originFailuresTooLarge
        case .tooManyRedirects, .redirectLoop, .redirectRefused: .originFailuresRedirects
        case .redirected(_, let failure): failure.metric
        case .circuitOpen: .originFailuresCircuit
        case .overloaded: .originFailuresLimit
        case .shutDown: .originFailuresStopping
        }
    }
}
