import Ground
import Wire

/// The bodies read from one connection, in an order independent of the pieces.
///
/// Invariant: every piece of a body is within the given bytes, and none is read twice.
struct BodyTranscript: Equatable {
    /// Small limits, so that an input of the fuzzer's length can exceed them.
    private static let limits = BodyLimits(extensionBytesMax: 16, trailerBytesMax: 64)

    /// The reason why a body could not be read to its end.
    private(set) var refusal: BodyDecodingError?
    private var bodies: [[UInt8]] = []
    private var ended = 0

    init() {}

    /// Returns the decoder of the next body.
    mutating func begin(_ framing: BodyFraming) -> BodyDecoder {
        bodies.append([])
        return BodyDecoder(framing, limits: Self.limits)
    }

    /// Performs one step of `body`, which becomes `nil` at its end; false if more bytes are needed.
    mutating func take(
        _ body: inout BodyDecoder?, _ span: Span<UInt8>, _ position: inout Int
    ) -> Bool {
        switch body?.next(span, from: position) {
        case .data(let extent, let next):
            precondition(!extent.isEmpty && next == extent.end && Int(extent.start) >= position)
            bodies[bodies.count - 1] += span.copy(extent.range)
            position = next
        case .end(let next):
            precondition(next >= position && next <= span.count)
            position = next
            ended += 1
            body = nil
        case .refused(let reason): refusal = reason
        case .needsMore, nil:
            position = span.count
            return false
        }
        return true
    }
}
