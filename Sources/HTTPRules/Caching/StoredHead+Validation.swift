package import Ground

/// The reasons why a head rendered by another process is rejected.
package enum StoredHeadFault: Error, Hashable, Sendable {
    /// The head is longer than any rendered here.
    case tooLong
    /// The head has no HTTP/1.1 status line with a status under which responses are stored.
    case statusLine
    /// The bytes at this offset are not a line `name: value` with CR LF.
    case fieldLine(at: Int)
    /// A part begins within a line, or before the part that it follows.
    case partOffsets
    /// The field at this offset is hop-by-hop, or generated for each response.
    case forbiddenField(at: Int)
    /// Content-Length is missing, duplicated, or differs from the size of the body.
    case length
    /// The recorded content type is not the value of a Content-Type line, or a Content-Type line is
    /// outside its part.
    case contentType
    /// The recorded entity tag is not the value of an ETag line.
    case entityTag
    /// The metadata is not that of a response.
    case metadata
}

extension StoredHeadFault: CustomStringConvertible {
    /// The reason as a clause for log lines.
    package var description: String {
        switch self {
        case .tooLong: "its head is too long"
        case .statusLine: "its head has no status line"
        case .fieldLine(let offset): "its head has no field line at byte \(offset)"
        case .partOffsets: "the parts of its head begin within lines"
        case .forbiddenField(let offset): "its head has a forbidden field at byte \(offset)"
        case .length: "its Content-Length differs from the length of its body"
        case .contentType: "its content type differs from that of its head"
        case .entityTag: "its entity tag differs from that of its head"
        case .metadata: "its metadata is invalid"
        }
    }
}

/// Heads from peers and from disk are trusted no more than those of an origin.
extension StoredHead {
    /// The maximum length of a head in bytes: the largest head that an origin may send, and what an
    /// operator may add.
    package static let bytesMax = 2 << 20

    /// Checks that every response made from this head is well formed.
    ///
    /// One pass covers the whole response, one range, several ranges and 304, for any bytes,
    /// offsets and flags. Readers of rendered lines may rely on the result.
    ///
    /// - Parameters:
    ///   - flags: the flags of the entry.
    ///   - size: the length of the body in bytes; `nil` while it is unknown, and the head must then
    ///     have no Content-Length.
    /// - Throws: ``StoredHeadFault`` for the first fault found.
    package func validate(_ flags: EntryFlags, size: UInt64?) throws(StoredHeadFault) {
        guard bytes.count <= Self.bytesMax else { throw .tooLong }
        guard flags.isResponse, !flags.contains(.isFenced) else { throw .metadata }
        let span = bytes.span
        guard let fieldsStart = Self.statusLineEnd(span) else { throw .statusLine }
        var scan = Validator(self, fieldsStart: fieldsStart)
        var index = fieldsStart
        while index < span.count {
            scan.lineStarted(at: index)
            guard let line = SerializedHead.line(span, at: index) else {
                throw .fieldLine(at: index)
            }
            try scan.validateLine(line, in: span, flags)
            index = line.value.end + 2
        }
        scan.lineStarted(at: index)
        try scan.finish(in: span, size: Self.status(bytes) == 204 ? nil : size)
        guard Self.status(bytes) != 204 || size ?? 0 == 0 else { throw .length }
    }

    /// Returns the end of the status line, after its CRLF; `nil` if it is not one of a complete
    /// final response.
    private static func statusLineEnd(_ bytes: Span<UInt8>) -> Int? {
        guard bytes.count > 12, bytes.matches("HTTP/1.1 ", at: 0..<9), bytes[12] == 0x20,
            let status = bytes.decimal(at: 9..<12), status >= 200, status != 206, status != 304
        else { return nil }
        return SerializedHead.lineEnd(bytes, from: 13).map { $0 + 2 }
    }

    /// The state of the check after the lines seen so far.
    private struct Validator {
        private let head: StoredHead
        private let fieldsStart: Int
        /// The parts that begin at the start of a line, one bit each.
        private var startedParts = 0
        private var length: UInt64?
        private var hasContentType = false
        private var hasEntityTag = false

        init(_ head: StoredHead, fieldsStart: Int) {
            self.head = head
            self.fieldsStart = fieldsStart
        }

        /// Records that a line, or the end of the head, is at `index`.
        mutating func lineStarted(at index: Int) {
            if index == head.partialStart { startedParts |= 1 }
            if index == head.multipartStart { startedParts |= 2 }
            if index == head.notModifiedStart { startedParts |= 4 }
        }

        /// Checks that a line may stand at its place, and records length, type and tag.
        mutating func validateLine(
            _ line: FieldLine, in bytes: Span<UInt8>, _ flags: EntryFlags
        ) throws(StoredHeadFault) {
            let start = Int(line.name.start)
            switch line.id {
            case .contentLength:
                guard length == nil, start < head.partialStart,
                    let said = bytes.decimal(at: line.value.range)
                else { throw .length }
                length = said
            case .contentType:
                guard start >= head.partialStart, start < head.multipartStart else {
                    throw .contentType
                }
                if line.value == head.contentType { hasContentType = true }
            case .etag:
                if line.value == head.entityTag, start >= head.notModifiedStart {
                    hasEntityTag = EntityTag(bytes, at: line.value.range) != nil
                }
            // Describes the message with the whole body only.
            case .contentRange where start >= head.partialStart: throw .forbiddenField(at: start)
            case .age: throw .forbiddenField(at: start)
            case .date where !flags.contains(.isDated): throw .forbiddenField(at: start)
            default:
                if HopByHop.isHopByHop(bytes, at: line.name.range, id: line.id) {
                    throw .forbiddenField(at: start)
                }
            }
        }

        /// Checks the offsets of the parts, the length, and the recorded type and tag.
        func finish(in bytes: Span<UInt8>, size: UInt64?) throws(StoredHeadFault) {
            let starts = [
                fieldsStart, head.partialStart, head.multipartStart, head.notModifiedStart,
            ]
            guard startedParts == 7, zip(starts, starts.dropFirst()).allSatisfy({ $0 <= $1 }) else {
                throw .partOffsets
            }
            guard length == size else { throw .length }
            guard hasContentType || head.contentType.isEmpty else { throw .contentType }
            guard hasEntityTag || head.entityTag.isEmpty else { throw .entityTag }
            // Empty extents are read, too.
            guard head.contentType.end <= bytes.count else { throw .contentType }
            guard head.entityTag.end <= bytes.count else { throw .entityTag }
        }
    }
}
