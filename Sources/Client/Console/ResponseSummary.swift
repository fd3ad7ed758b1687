package import Admin

/// The summary of a response on a port for clients.
package struct ResponseSummary: Sendable {
    /// The status.
    package var status: UInt16
    /// The fields in the order of arrival.
    package var fields: [(name: String, value: String)]
    /// The size of the body; `nil` if it was not requested.
    package var bodyBytes: UInt64?
    /// The time from the connection to the end of the response.
    package var elapsedMilliseconds: Int64

    /// Creates a summary from its parts.
    package init(
        status: UInt16, fields: [(name: String, value: String)], bodyBytes: UInt64?,
        tookMilliseconds: Int64
    ) {
        self.status = status
        self.fields = fields
        self.bodyBytes = bodyBytes
        self.elapsedMilliseconds = tookMilliseconds
    }

    /// Returns the value of a field.
    private func value(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name }?.value
    }

    /// The size of the body as text.
    private var size: String? {
        (bodyBytes ?? value("content-length").flatMap { UInt64($0) }).map(NumberFormat.bytes)
    }

    /// The status, cache result, type, size and time, followed by all fields.
    package var lines: [TextLine] {
        var pairs = KeyValueTable()
        pairs.append("status", TextLine("\(status)", (200..<300).contains(status) ? .good : .bad))
        pairs.append("cache", TextLine(value("cache-status") ?? "–", cacheStyle))
        pairs.append("type", value("content-type") ?? "–")
        pairs.append("size", size ?? "–")
        if let age = value("age") { pairs.append("age", "\(age)s") }
        pairs.append("time", NumberFormat.duration(milliseconds: elapsedMilliseconds))
        return pairs.lines() + [TextLine()]
            + fields.map { TextLine($0.name, .faint) + TextLine(": \($0.value)") }
    }

    /// The style of the cache result.
    private var cacheStyle: TextStyle {
        (value("cache-status") ?? "").contains("; hit") ? .good : .warning
    }

    /// Returns the summary in one line.
    package func line(savedAs path: String) -> TextLine {
        TextLine(path, .strong)
            + TextLine(": \(size ?? "0 B") \(value("content-type") ?? "of no type"), ")
            + TextLine(value("cache-status") ?? "no Cache-Status", cacheStyle)
            + TextLine(", \(NumberFormat.duration(milliseconds: elapsedMilliseconds))")
    }

    /// The summary as JSON.
    package var json: JSON {
        [
            "status": JSON(status), "body_bytes": JSON(bodyBytes),
            "elapsed_ms": .number(elapsedMilliseconds),
            "fields": .list(fields.map { [.text($0.name), .text($0.value)] }),
        ]
    }
}
