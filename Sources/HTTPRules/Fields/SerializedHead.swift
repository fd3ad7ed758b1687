import Ground

/// A head rendered by a node: a first line, then lines `name: value`, each ended by CRLF.
enum SerializedHead {
    /// Returns the field lines in order, up to the first malformed one.
    static func lines(_ bytes: [UInt8]) -> [FieldLine] {
        let span = bytes.span
        var lines: [FieldLine] = []
        guard var index = lineEnd(span, from: 0) else { return [] }
        // Most heads have at most 16 lines.
        lines.reserveCapacity(16)
        index += 2
        while let line = line(span, at: index) {
            lines.append(line)
            index = line.value.end + 2
        }
        return lines
    }

    /// Parses the line `name: value` at `start`; `nil` if there is none.
    static func line(_ bytes: Span<UInt8>, at start: Int) -> FieldLine? {
        var colon = start
        while colon < bytes.count, ByteSet.token.contains(bytes[colon]) { colon += 1 }
        guard colon > start, colon + 1 < bytes.count, bytes[colon] == UInt8(ascii: ":"),
            bytes[colon + 1] == 0x20, let end = lineEnd(bytes, from: colon + 2)
        else { return nil }
        return FieldLine(
            id: FieldName(bytes, at: start..<colon),
            name: Extent(start: start, count: colon - start),
            value: Extent(start: colon + 2, count: end - colon - 2))
    }

    /// Returns the offset of the CRLF that ends the line; `nil` if there is none, or a byte before
    /// it is not allowed in a line.
    static func lineEnd(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        var end = start
        while end < bytes.count, bytes[end] == 0x09 || (bytes[end] >= 0x20 && bytes[end] != 0x7F) {
            end += 1
        }
        guard end + 1 < bytes.count, bytes[end] == 0x0D, bytes[end + 1] == 0x0A else { return nil }
        return end
    }
}

extension StoredHead {
    /// Returns the field lines of rendered bytes in order, without the status line.
    package static func lines(_ bytes: [UInt8]) -> [FieldLine] {
        SerializedHead.lines(bytes)
    }
}

extension [UInt8] {
    /// Appends a field line of another message, name and value byte for byte.
    mutating func appendLine(_ line: FieldLine, of bytes: Span<UInt8>) {
        append(bytes, at: line.name.range)
        append(0x3A)
        append(0x20)
        append(bytes, at: line.value.range)
        appendLineEnd()
    }

    /// Appends the field line that `setting` describes.
    mutating func appendLine(_ setting: FieldSetting) {
        append(contentsOf: setting.name)
        append(0x3A)
        append(0x20)
        append(contentsOf: setting.value)
        appendLineEnd()
    }

    mutating func append(_ bytes: Span<UInt8>, at range: Range<Int>) {
        for index in range { append(bytes[index]) }
    }

    mutating func appendLineEnd() {
        append(0x0D)
        append(0x0A)
    }

    /// Appends the line `Date: …` (RFC 9110 §6.6.1).
    mutating func appendDate(_ time: WallTime) {
        append(contentsOf: "Date: ".utf8)
        HTTPDate.append(time, to: &self)
        appendLineEnd()
    }
}

extension Span<UInt8> {
    /// Returns true if the name in `range` is `name`, ignoring case (RFC 9110 §5.1).
    func matchesFieldName(at range: Range<Int>, of name: [UInt8]) -> Bool {
        matchesFieldName(at: range, of: name.span, at: name.indices)
    }

    /// Returns true if the names in `range` and in `place` of `other` are equal, ignoring case (RFC
    /// 9110 §5.1).
    func matchesFieldName(at range: Range<Int>, of other: Span<UInt8>, at place: Range<Int>) -> Bool
    {
        guard range.count == place.count else { return false }
        for offset in 0..<range.count
        where ASCII.lowercased(self[range.lowerBound + offset])
            != ASCII.lowercased(other[place.lowerBound + offset])
        {
            return false
        }
        return true
    }
}

/// The head of an interim response (RFC 9110 §15.2) rendered by another process: status line, field
/// lines and the empty line.
package enum InterimResponseHead {
    /// Returns true if `bytes` are exactly one interim head that may be forwarded, safe for any
    /// input.
    package static func isWellFormed(_ bytes: [UInt8]) -> Bool {
        let span = bytes.span
        guard bytes.count > 12, span.matches("HTTP/1.1 ", at: 0..<9), bytes[12] == 0x20,
            let status = span.decimal(at: 9..<12), status < 200,
            ResponseForwarder.forwardsInterim(UInt16(status)),
            let statusEnd = SerializedHead.lineEnd(span, from: 13)
        else { return false }
        guard let end = RenderedFieldSection.end(span, from: statusEnd + 2) else { return false }
        return bytes[end...].elementsEqual("\r\n".utf8)
    }
}

/// Field lines rendered by another process, each with its CRLF.
package enum RenderedFieldSection {
    /// Returns true if `bytes` are nothing but field lines, none of which frames a message or is
    /// hop-by-hop.
    package static func isWellFormed(_ bytes: [UInt8]) -> Bool {
        end(bytes.span, from: 0) == bytes.count
    }

    /// Returns the end of the field lines that begin at `start`; `nil` if one must not be
    /// forwarded.
    fileprivate static func end(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        var index = start
        while let line = SerializedHead.line(bytes, at: index) {
            guard line.id != .contentLength,
                !HopByHop.isHopByHop(bytes, at: line.name.range, id: line.id)
            else { return nil }
            index = line.value.end + 2
        }
        return index
    }
}
