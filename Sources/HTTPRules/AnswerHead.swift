package import Ground

/// An origin's answer without its body: the status and the field lines, over a copy of the head's
/// bytes.
///
/// Cold path only: made once per fetch.
package struct ResponseHead: Hashable, Sendable {
    /// The three-digit status code.
    package var status: UInt16
    /// The head as it was received, up to and including the empty line.
    package var bytes: [UInt8]
    /// The field lines in the order received; extents lie in ``bytes``.
    package var lines: [FieldLine]

    package init(status: UInt16, bytes: [UInt8], lines: [FieldLine]) {
        self.status = status
        self.bytes = bytes
        self.lines = lines
    }

    /// The lines with this name, in the order received.
    package func lines(_ name: FieldName) -> [FieldLine] {
        lines.filter { $0.id == name }
    }

    /// The value of the first line with this name.
    package func first(_ name: FieldName) -> Extent? {
        lines.first { $0.id == name }?.value
    }

    /// True if it is of a stream of events (HTML, "Server-sent events"), which come when they
    /// happen.
    package var isEventStream: Bool {
        guard let type = first(.contentType) else { return false }
        return String(decoding: bytes[type.range], as: UTF8.self).lowercased()
            .hasPrefix("text/event-stream")
    }
}
