import Ground
package import Wire

/// The bodies of one connection as they were read, in an order that does not depend on the pieces.
///
/// Held: every piece of a body lies in the bytes that were given, and none is taken twice.
package struct BodyTranscript: Equatable {
    /// Small, so that an input of the fuzzer's length passes them.
    private static let limits = BodyLimits(extensionBytesMax: 16, trailerBytesMax: 64)

    /// Why a body could not be read to its end.
    package private(set) var refusal: BodyDecodingError?
    private var bodies: [[UInt8]] = []
    private var ended = 0

    package init() {}

    /// The reader of the next body.
    package mutating func begin(_ framing: BodyFraming) -> BodyDecoder {
        bodies.append([])
        return BodyDecoder(framing, limits: Self.limits)
    }

    /// Takes in one step of `body`, which is nil once it has ended; false if more bytes are needed.
    package mutating func take(
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
