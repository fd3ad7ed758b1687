/// A function that must hold its invariants for every input; `deploy/fuzz` knows it by its name.
package struct FuzzTarget: Sendable {
    /// The name on the command line.
    package let name: String
    /// The length of the shortest input that the function takes, in bytes.
    package let bytesMin: Int
    private let body: @Sendable ([UInt8]) -> Void

    private init(_ name: String, bytesMin: Int = 0, _ body: @escaping @Sendable ([UInt8]) -> Void) {
        self.name = name
        self.bytesMin = bytesMin
        self.body = body
    }

    /// Runs the function, which traps where an invariant does not hold; shorter input than
    /// ``bytesMin`` is ignored.
    package func run(_ input: [UInt8]) {
        if input.count >= bytesMin { body(input) }
    }

    /// All targets, ordered by name.
    package static let all: [FuzzTarget] = [
        FuzzTarget("chunked", bytesMin: 1, fuzzChunked),
        FuzzTarget("config", fuzzConfig),
        FuzzTarget("control", fuzzControl),
        FuzzTarget("date", bytesMin: 1, fuzzDate),
        FuzzTarget("disk", fuzzDisk),
        FuzzTarget("forward", bytesMin: 2, fuzzForward),
        FuzzTarget("http2", bytesMin: 3, fuzzHTTP2),
        FuzzTarget("image", bytesMin: 3, fuzzImage),
        FuzzTarget("journal", bytesMin: 3, fuzzJournal),
        FuzzTarget("peer-frames", bytesMin: 3, fuzzPeerFrames),
        FuzzTarget("proxy-protocol", fuzzProxyProtocol),
        FuzzTarget("purge", bytesMin: 2, fuzzPurge),
        FuzzTarget("query", fuzzQuery),
        FuzzTarget("range", bytesMin: 1, fuzzRange),
        FuzzTarget("request-head", bytesMin: 2, fuzzRequestHead),
        FuzzTarget("response-head", bytesMin: 2, fuzzResponseHead),
        FuzzTarget("signed", fuzzSigned),
        FuzzTarget("stored-head", bytesMin: 2, fuzzStoredHead),
        FuzzTarget("tls", bytesMin: 1, fuzzTLS),
        FuzzTarget("trace", fuzzTrace),
        FuzzTarget("url", fuzzURL),
        FuzzTarget("vary", fuzzVary),
    ]
}

/// Reads an input whole, in two pieces, of which the first is `cut` of 255 parts, and byte by byte
/// if it is short; the results must be equal.
///
/// `read` reads up to each of the given offsets.
@discardableResult
func checkPieces<Outcome: Equatable>(
    _ input: [UInt8], cut: UInt8, bytewiseBelow bytesMax: Int, read: ([Int]) -> Outcome
) -> Outcome {
    let whole = read([input.count])
    precondition(read([Int(cut) * input.count / 255, input.count]) == whole)
    if input.count < bytesMax { precondition(read(Array(0...input.count)) == whole) }
    return whole
}
