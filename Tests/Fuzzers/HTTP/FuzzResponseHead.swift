import Ground
import HTTPRules
import Wire

/// Responses from a hostile origin: the first byte says where the rest is cut in two, and its
/// lowest bit whether the request was HEAD.
///
/// Invariants: the two pieces are read like the whole, and so are single bytes while the input is
/// short; every extent is within the copied head; the position only grows.
func fuzzResponseHead(_ bytes: [UInt8]) {
    let input = Array(bytes.dropFirst())
    let isHead = bytes[0] & 1 == 1
    checkPieces(input, cut: bytes[0], bytewiseBelow: 200) {
        Transcript(input, stops: $0, isHead: isHead)
    }
}

/// The results of reading, in an order independent of the pieces.
private struct Transcript: Equatable {
    private var interims: [ResponseHead] = []
    private var heads: [FramedResponseHead] = []
    private var bodies = BodyTranscript()
    private var refusal: ResponseParseError?

    init(_ input: [UInt8], stops: [Int], isHead: Bool) {
        let limits = HeadLimits(headBytesMax: 600, fieldsMax: 12)
        var parser = ResponseParser(limits: limits)
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
                let result = parser.parse(span, from: position, requestIsHead: isHead)
                if result == .incomplete { break }
                switch result {
                case .interim(let head, let end):
                    precondition(end > position && end <= stop && head.status / 100 == 1)
                    check(head, input[position..<end])
                    interims.append(head)
                    position = end
                case .head(let head, let end):
                    check(head.head, input[position..<end])
                    precondition(head.head.status >= 200)
                    precondition(head.framing != .untilClose || !head.isPersistent)
                    heads.append(head)
                    body = bodies.begin(head.framing)
                    position = end
                case .refused(let reason):
                    precondition(!reason.message.isEmpty)
                    refusal = reason
                case .incomplete: break
                }
            }
        }
    }

    private func check(_ head: ResponseHead, _ bytes: ArraySlice<UInt8>) {
        precondition(head.bytes == Array(bytes))
        precondition((100...999).contains(head.status))
        let span = head.bytes.span
        for line in head.lines {
            precondition(!line.name.isEmpty && line.value.end + 2 <= span.count)
            precondition(line.id == FieldName(span, at: line.name.range))
            for index in line.value.range {
                precondition(span[index] == 9 || (span[index] >= 32 && span[index] != 127))
            }
        }
    }
}
