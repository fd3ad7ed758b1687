import HTTPRules
import Logging

/// Gives requests their ids: what the node drew at its start, and a number.
///
/// The highest bits of a number are the loop's own, so that no two loops give the same; a loop that
/// answers a million requests a second has enough for two thousand years.
struct RequestIDGenerator {
    let prefix: UInt64
    /// ``run`` in digits, as every answer has it.
    let prefixDigits: HexDigits
    private var last: UInt64

    init(run: UInt64, loop: Int) {
        precondition(loop < 1 << 8, "a loop's number is a byte")
        self.prefix = run
        prefixDigits = HexDigits(run)
        last = UInt64(loop) << 56
    }

    /// The number of a request that begins.
    @inline(__always)
    mutating func next() -> UInt64 {
        last &+= 1
        return last
    }

    /// The id of the request with this number.
    func id(_ number: UInt64) -> RequestID { RequestID(process: prefix, number: number) }
}

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
