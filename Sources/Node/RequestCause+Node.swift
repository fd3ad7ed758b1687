import HTTPRules
import Logging

extension RequestCorrelation {
    /// `fields` of a line that is logged for the sake of this request, which it then names.
    func metadata(_ fields: Logger.Metadata) -> Logger.Metadata {
        var fields = fields
        fields["request_id"] = "\(id)"
        if let trace { fields["trace_id"] = "\(trace.traceIDText)" }
        return fields
    }
}

extension UInt64 {
    /// What a part of a trace is called that begins now; not zero.
    static func randomSpanID() -> UInt64 { .random(in: 1 ... .max) }
}
