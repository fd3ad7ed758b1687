import Ground
import HTTPRules
import Wire

/// Requests from a hostile client: the first byte says where the rest is cut in two.
///
/// Invariants: the two pieces are read like the whole, and so are single bytes while the input is
/// short; every extent is within the input; the position only grows; targets and values contain no
/// forbidden byte.
func fuzzRequestHead(_ bytes: [UInt8]) {
    let input = Array(bytes.dropFirst())
    let limits = HeadLimits(headBytesMax: 600, targetBytesMax: 200, fieldsMax: 12)
    checkPieces(input, cut: bytes[0], bytewiseBelow: 200) {
        Transcript(input, stops: $0, limits: limits)
    }
}

/// The results of reading, in an order independent of the pieces.
private struct Transcript: Equatable {
    private var heads: [[UInt8]] = []
    private var framings: [BodyFraming] = []
    private var bodies = BodyTranscript()
    private var refusal: RequestParseError?

    init(_ input: [UInt8], stops: [Int], limits: HeadLimits) {
        var parser = RequestParser(limits: limits)
        var body: BodyDecoder?
        var position = 0
        for stop in stops {
            let span = input.span.extracting(0..<stop)
            var steps = 0
            while refusal == nil && bodies.refusal == nil {
                steps += 1
                precondition(steps <= 2 * input.count + 2, "loops")
                if body != nil {
                    guard bodies.take(&body, span, &position) else { break }
                    continue
                }
                let result = parser.parse(span, from: position)
                if result == .incomplete { break }
                switch result {
                case .head(let end):
                    precondition(end > position && end <= stop)
                    check(parser, span, position..<end)
                    heads.append(span.copy(position..<end))
                    framings.append(parser.framing)
                    body = bodies.begin(parser.framing)
                    position = end
                case .refused(let reason):
                    precondition((400...505).contains(reason.status))
                    precondition(!reason.message.isEmpty)
                    refusal = reason
                case .incomplete: break
                }
            }
        }
    }

    private func check(
        _ parser: borrowing RequestParser, _ span: Span<UInt8>, _ head: Range<Int>
    ) {
        for extent in [parser.methodName, parser.target] {
            precondition(!extent.isEmpty && head.contains(Int(extent.start)))
            precondition(extent.end <= head.upperBound)
            for index in extent.range { precondition((0x21...0x7E).contains(span[index])) }
        }
        precondition(parser.path.end <= parser.target.end)
        precondition(parser.framing != .untilClose)
        precondition(!parser.host.isEmpty || parser.isHTTP10)
        if !parser.host.isEmpty { precondition(Authority.isValid(span, at: parser.host.range)) }
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            precondition(!line.name.isEmpty && line.name.end < head.upperBound)
            precondition(line.value.end <= head.upperBound)
            precondition(line.id == FieldName(span, at: line.name.range))
            for index in line.value.range {
                precondition(span[index] == 9 || (span[index] >= 32 && span[index] != 127))
            }
        }
    }
}
