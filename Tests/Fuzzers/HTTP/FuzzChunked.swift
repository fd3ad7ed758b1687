import Ground
import Wire

/// Small limits, so that an input of the fuzzer's length can exceed them.
private let limits = BodyLimits(extensionBytesMax: 24, trailerBytesMax: 80)

/// Chunked bodies of requests and responses: the first byte says where the rest is cut in two.
///
/// Invariants: data, trailers, end and refusal are those of the grammar read over the whole array;
/// the two pieces are read like the whole, and so are single bytes while the input is short; a
/// decision is final.
func fuzzChunked(_ bytes: [UInt8]) {
    let input = Array(bytes.dropFirst())
    let expected = NaiveChunks.read(
        input, extensionBytesMax: limits.extensionBytesMax,
        trailerBytesMax: limits.trailerBytesMax)
    let found = checkPieces(input, cut: bytes[0], bytewiseBelow: 300) { read(input, stops: $0) }
    precondition(found == expected)
}

/// Reads the input up to each of `stops`, each time from where the last step ended.
private func read(_ input: [UInt8], stops: [Int]) -> NaiveChunks.Outcome {
    var decoder = BodyDecoder(.chunked, limits: limits, keepsTrailers: true)
    var data: [UInt8] = []
    var position = 0
    for stop in stops {
        let span = input.span.extracting(0..<stop)
        var isWaiting = false
        while !isWaiting {
            let step = decoder.next(span, from: position)
            switch step {
            case .data(let extent, let next):
                precondition(!extent.isEmpty && Int(extent.start) >= position)
                precondition(next == extent.end && next <= stop)
                data += span.copy(extent.range)
                position = next
            case .needsMore:
                position = stop
                isWaiting = true
            case .end(let next):
                precondition(next >= position && next <= stop && decoder.isAtEnd)
                precondition(decoder.next(span, from: next) == step)
                return .whole(data, trailers: decoder.trailers.bytes, end: next)
            case .refused(let refusal):
                precondition(!refusal.message.isEmpty)
                precondition(decoder.next(span, from: stop) == step)
                return .broken(data)
            }
        }
    }
    return .incomplete(data)
}
