/// The request for whose sake something is done: owners and origins are told of it, and so are the
/// readers of logs.
package struct RequestCorrelation: Hashable, Sendable {
    package let id: RequestID
    /// Nil if the request came without a valid one.
    package let trace: TraceContext?

    package init(_ id: RequestID, _ trace: TraceContext?) {
        self.id = id
        self.trace = trace
    }

    /// The lines that an origin is sent; `span` is what the question is called in the trace, and
    /// not zero.
    package func fieldLines(span: UInt64) -> [FieldSetting] {
        var lines = [FieldSetting(.xRequestID, RequestID.fieldName, id.text)]
        guard let trace else { return lines }
        lines.append(FieldSetting(.traceparent, "traceparent", trace.traceparent(span: span)))
        if !trace.state.isEmpty {
            lines.append(FieldSetting(.tracestate, "tracestate", trace.state))
        }
        return lines
    }

    /// True for the fields that ``lines(span:)`` stand in place of.
    static func contains(_ field: FieldName) -> Bool {
        switch field {
        case .xRequestID, .traceparent, .tracestate: true
        default: false
        }
    }
}
