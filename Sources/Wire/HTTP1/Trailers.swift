package import HTTPRules

/// The trailer section of a chunked body: fields that came after it (RFC 9110 §6.5, RFC 9112
/// §7.1.2).
///
/// They are never taken for fields of the head; whoever relays a message relays them as trailers.
package struct Trailers: Hashable, Sendable {
    /// Whole field lines, each with its CR LF; without the empty line that ends the section.
    package let bytes: [UInt8]
    /// The lines in the order received; extents lie in ``bytes``.
    package let lines: [FieldLine]

    /// No fields.
    package init() {
        bytes = []
        lines = []
    }

    /// Those of a section in the form of ``bytes``; nil if it is malformed, or if a field would say
    /// how the message is framed or routed.
    package init?(_ section: [UInt8]) {
        let span = section.span
        var lines: [FieldLine] = []
        var position = 0
        while position < span.count {
            guard
                case .line(let mark, let next) = FieldLineParser.parseLine(
                    span, at: position, end: span.count),
                !Self.isForbidden(mark.id)
            else { return nil }
            lines.append(mark.line)
            position = next
        }
        bytes = section
        self.lines = lines
    }

    package var isEmpty: Bool { lines.isEmpty }

    /// True for a name that no trailer field may have (RFC 9110 §6.5.1).
    static func isForbidden(_ name: FieldName) -> Bool {
        switch name {
        case .contentLength, .transferEncoding, .host: true
        default: false
        }
    }
}
