import Ground

/// What an answer's Vary nominates (RFC 9110 §12.5.5, RFC 9111 §4.1).
///
/// A request to an origin carries nothing of the client's but the reduced Accept and
/// Accept-Encoding. Any other field that Vary names is absent from, or the same in, all of them,
/// and so always matches.
struct VaryRules {
    /// The parts of the negotiation that were nominated.
    private(set) var varies: Negotiation = []
    /// `*`: no other request ever matches.
    private(set) var isEverything = false

    init(_ head: AnswerHead) {
        let bytes = head.bytes.span
        for line in head.lines {
            switch line.id {
            case .vary: add(bytes, at: line.value.range)
            case .contentEncoding:
                // A coding must reach nobody who did not ask for it, also if the origin forgot to
                // say so.
                if !bytes.holdsIgnoringCase("identity", at: line.value.range) {
                    varies.formUnion(.codings)
                }
            default: break
            }
        }
    }

    private mutating func add(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var cursor = range.lowerBound
        while let element = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
            if element.count == 1, bytes[element.lowerBound] == UInt8(ascii: "*") {
                isEverything = true
            } else if bytes.holdsIgnoringCase("accept", at: element) {
                varies.formUnion(.types)
            } else if bytes.holdsIgnoringCase("accept-encoding", at: element) {
                varies.formUnion(.codings)
            }
        }
    }
}
