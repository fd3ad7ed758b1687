import Admin
import Ground
import HTTPRules
import Platform
import Serving
import Store
import Wire

/// A copy of a request that outlives the read buffer: its head with the offsets of the lines, and
/// the body of an admin request.
struct BufferedRequest {
    /// The buffered part of the request body.
    private(set) var body: [UInt8] = []
    /// Size of the request body so far, in bytes, buffered or not.
    private var bodyBytes: UInt64 = 0
    /// Declared size of the request body, in bytes; 0 if there is none.
    private let declaredBodyBytes: UInt64
    /// Bytes of the head.
    let head: [UInt8]
    /// Field lines, as offsets in ``head``.
    let lines: [FieldLine]
    /// True for an HTTP/1.0 request.
    let isHTTP10: Bool

    /// Appends a piece of the body of an admin request, unless it already exceeds the limit; of
    /// other bodies, only the size is recorded.
    mutating func appendBody(_ piece: Span<UInt8>, plane side: Plane) {
        bodyBytes += UInt64(piece.count)
        guard side == .admin, body.count <= AdminOperation.bodyBytesMax else { return }
        body += piece.copy(0..<piece.count)
    }

    /// Creates a copy of the head in `range` of `bytes`, as `parser` has parsed it.
    init(copying parser: borrowing RequestParser, _ bytes: Span<UInt8>, _ range: Range<Int>) {
        head = bytes.copy(range)
        var lines = parser.fields.copy()
        if range.lowerBound > 0 {
            for (index, line) in lines.enumerated() {
                lines[index] = FieldLine(
                    id: line.id, name: line.name.moved(down: range.lowerBound),
                    value: line.value.moved(down: range.lowerBound))
            }
        }
        self.lines = lines
        declaredBodyBytes = if case .length(let length) = parser.framing { length } else { 0 }
        isHTTP10 = parser.isHTTP10
    }

    /// Returns the problem of a body that has, or is declared to have, more than `bytesMax` bytes;
    /// `nil` if it has not.
    func bodyProblem(bytesMax: UInt64) -> Problem? {
        max(bodyBytes, declaredBodyBytes) > bytesMax ? .bodyTooLarge(bytesMax: bytesMax) : nil
    }

    /// Returns which part of an entry the request selects by ranges and conditions.
    func selection(
        _ facts: RequestTraits, of entry: EntryMetadata, _ head: RenderedHead, rangesMax: Int
    ) -> Selection {
        let tag = head.slice(head.entityTag)
        return Selection.decide(
            facts, lines: lines, in: self.head.span, entityTag: tag.span, facts: entry,
            rangesMax: rangesMax, now: SystemClock.wallTime())
    }
}

extension Extent {
    /// Returns this extent relative to a copy that begins at `offset`.
    fileprivate func moved(down offset: Int) -> Extent {
        Extent(start: Int(start) - offset, count: Int(count))
    }
}
