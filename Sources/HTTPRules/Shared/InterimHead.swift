import Ground

/// The head of an interim answer (RFC 9110 §15.2) that another process has rendered: status line,
/// field lines and the empty line.
package enum InterimResponseHead {
    /// True if `bytes` are one that may be passed on: whatever they are, nothing else is sent with
    /// them.
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

/// Field lines that another process has rendered, each with its end.
package enum RenderedFieldSection {
    /// True if `bytes` are field lines and nothing else, none of which frames a message or is of
    /// one hop.
    package static func isWellFormed(_ bytes: [UInt8]) -> Bool {
        end(bytes.span, from: 0) == bytes.count
    }

    /// Where the field lines from `start` on end; nil if one may not be passed on.
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
