package import Ground

/// What is wrong with a head that another process has rendered.
package enum StoredHeadFault: Error, Hashable, Sendable {
    /// More bytes than any head has that was rendered here.
    case tooLong
    /// It does not begin with a line of HTTP/1.1 whose status an answer is stored with.
    case statusLine
    /// Something that is no line `name: value` with CR LF at this offset.
    case fieldLine(at: Int)
    /// A part begins within a line, or before the part that it comes after.
    case partOffsets
    /// A field that each answer gets anew, or that is of one hop, at this offset.
    case forbiddenField(at: Int)
    /// Content-Length is missing, comes twice, or is not the size of the body.
    case length
    /// What is said to be the content type is none, or a Content-Type stands elsewhere.
    case contentType
    /// What is said to be the entity tag is none.
    case entityTag
    /// The facts are those of no answer.
    case metadata
}

extension StoredHeadFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLong: "its head is longer than any"
        case .statusLine: "its head has no status line"
        case .fieldLine(let offset): "its head has no field line at byte \(offset)"
        case .partOffsets: "the parts of its head begin within lines"
        case .forbiddenField(let offset): "its head has a field that none has, at byte \(offset)"
        case .length: "its head has another Content-Length than its body"
        case .contentType: "its content type is not that of its head"
        case .entityTag: "its entity tag is not that of its head"
        case .metadata: "it is no answer"
        }
    }
}

/// Heads from peers and from disk are believed no more than an origin's.
extension StoredHead {
    /// Room for the most that an origin may be let send, and what an operator may add.
    package static let bytesMax = 2 << 20

    /// Looks whether every answer that is made of this head is well formed.
    ///
    /// In one pass: whole, for one range, for several, and 304, whatever the bytes, the places and
    /// the flags are. Whatever reads rendered lines may rely on it.
    ///
    /// - Parameters:
    ///   - flags: of the answer's facts.
    ///   - size: length of the body in bytes; nil while it is not known, and then the head says
    ///     nothing of it either.
    /// - Throws: what is wrong with it.
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

    /// Where the status line ends, its CRLF included; nil if there is none of a whole final answer.
    private static func statusLineEnd(_ bytes: Span<UInt8>) -> Int? {
        guard bytes.count > 12, bytes.matches("HTTP/1.1 ", at: 0..<9), bytes[12] == 0x20,
            let status = bytes.decimal(at: 9..<12), status >= 200, status != 206, status != 304
        else { return nil }
        return SerializedHead.lineEnd(bytes, from: 13).map { $0 + 2 }
    }

    /// What was seen of the lines so far.
    private struct Validator {
        private let head: StoredHead
        private let fieldsStart: Int
        /// The parts that begin where a line does.
        private var startedParts = 0
        private var length: UInt64?
        private var hasContentType = false
        private var hasEntityTag = false

        init(_ head: StoredHead, fieldsStart: Int) {
            self.head = head
            self.fieldsStart = fieldsStart
        }

        /// A line, or the end, is at `index`.
        mutating func lineStarted(at index: Int) {
            if index == head.partialStart { startedParts |= 1 }
            if index == head.multipartStart { startedParts |= 2 }
            if index == head.notModifiedStart { startedParts |= 4 }
        }

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
            // Of the one message with all of it.
            case .contentRange where start >= head.partialStart: throw .forbiddenField(at: start)
            case .age: throw .forbiddenField(at: start)
            case .date where !flags.contains(.isDated): throw .forbiddenField(at: start)
            default:
                if HopByHop.isHopByHop(bytes, at: line.name.range, id: line.id) {
                    throw .forbiddenField(at: start)
                }
            }
        }

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
            // Empty ones are read, too.
            guard head.contentType.end <= bytes.count else { throw .contentType }
            guard head.entityTag.end <= bytes.count else { throw .entityTag }
        }
    }
}
