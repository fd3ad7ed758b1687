package import HTTPRules

/// The trailer fields of a chunked body (RFC 9110 §6.5, RFC 9112 §7.1.2).
///
/// They are never merged into the head; a relay forwards them as trailers.
package struct Trailers: Hashable, Sendable {
    /// The field lines, each with its CR LF, without the empty line that ends the section.
    package let bytes: [UInt8]
    /// The lines in the order received; extents refer to ``bytes``.
    package let lines: [FieldLine]

    /// Creates an empty section.
    package init() {
        bytes = []
        lines = []
    }

    /// Parses a section in the form of ``bytes``; `nil` if it is malformed, or if a field affects
    /// framing or routing.
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

    /// True if there are no fields.
    package var isEmpty: Bool { lines.isEmpty }

    /// Returns true for a name that is forbidden in trailers (RFC 9110 §6.5.1).
    static func isForbidden(_ name: FieldName) -> Bool {
        switch name {
        case .contentLength, .transferEncoding, .host: true
        default: false
        }
    }
}
