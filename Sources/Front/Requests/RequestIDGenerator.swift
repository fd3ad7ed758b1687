import HTTPRules
import Logging

/// Generator of request IDs: a random number drawn at the start of the node, and a counter.
///
/// The highest byte of the counter is the loop's number, so no two loops generate the same ID; a
/// loop that serves a million requests per second has enough for two thousand years.
struct RequestIDGenerator {
    /// Number drawn at the start of the node.
    let prefix: UInt64
    /// ``prefix`` in hexadecimal digits, as responses contain it.
    let prefixDigits: HexDigits
    /// Number of the last request.
    private var last: UInt64

    /// Creates the generator of a loop; `run` becomes ``prefix``.
    init(run: UInt64, loop: Int) {
        precondition(loop < 1 << 8, "a loop's number is a byte")
        self.prefix = run
        prefixDigits = HexDigits(run)
        last = UInt64(loop) << 56
    }

    /// Returns the number of a new request.
    @inline(__always)
    mutating func next() -> UInt64 {
        last &+= 1
        return last
    }

    /// Returns the ID of the request with this number.
    func id(_ number: UInt64) -> RequestID { RequestID(process: prefix, number: number) }
}

extension RequestCorrelation {
    /// Returns the log metadata `fields` with the IDs of this request added.
    func metadata(_ fields: Logger.Metadata) -> Logger.Metadata {
        var fields = fields
        fields["request_id"] = "\(id)"
        if let trace { fields["trace_id"] = "\(trace.traceIDText)" }
        return fields
    }
}

extension UInt64 {
    /// Returns a random trace span ID that is not zero.
    static func randomSpanID() -> UInt64 { .random(in: 1 ... .max) }
}
