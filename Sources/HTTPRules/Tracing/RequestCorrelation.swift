/// The identifiers of the request that causes an action, sent to owners and origins and written to
/// logs.
package struct RequestCorrelation: Hashable, Sendable {
    /// The identifier of the request.
    package let id: RequestID
    /// The trace of the request; `nil` if it came without a valid one.
    package let trace: TraceContext?

    /// Creates a correlation from its parts.
    package init(_ id: RequestID, _ trace: TraceContext?) {
        self.id = id
        self.trace = trace
    }

    /// Returns the field lines for an origin.
    ///
    /// - Parameter span: the identifier of the request to the origin in the trace; not zero.
    /// - Returns: the line of X-Request-ID and, if the request is traced, those of traceparent and
    ///   tracestate.
    package func fieldLines(span: UInt64) -> [FieldSetting] {
        var lines = [FieldSetting(.xRequestID, RequestID.fieldName, id.text)]
        guard let trace else { return lines }
        lines.append(FieldSetting(.traceparent, "traceparent", trace.traceparent(span: span)))
        if !trace.state.isEmpty {
            lines.append(FieldSetting(.tracestate, "tracestate", trace.state))
        }
        return lines
    }

    /// Returns true for the fields that ``fieldLines(span:)`` replaces.
    static func contains(_ field: FieldName) -> Bool {
        switch field {
        case .xRequestID, .traceparent, .tracestate: true
        default: false
        }
    }
}
