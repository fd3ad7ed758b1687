import Cluster
import HTTPRules

extension PeerQuery.RequestTrace {
    /// What a peer is told of a request; `span` is what the question is called in its trace, if it
    /// has one, and not zero.
    init(_ cause: RequestCorrelation, span: @autoclosure () -> UInt64) {
        self.init(
            requestID: cause.id.text, traceParent: cause.trace?.traceparent(span: span()) ?? [],
            traceState: cause.trace?.state ?? [])
    }
}

extension RequestCorrelation {
    /// The request that a peer has told of; one of which it says nothing has an id of `names`.
    init(_ told: PeerQuery.RequestTrace, fallbackNames names: inout RequestIDGenerator) {
        self.init(
            RequestID(told.requestID) ?? names.id(names.next()),
            TraceContext(parent: told.traceParent, state: told.traceState))
    }
}
