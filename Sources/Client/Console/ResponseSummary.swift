package import Admin

/// What is said of an answer that clients get.
package struct ResponseSummary: Sendable {
    package var status: UInt16
    /// In the order in which they came.
    package var fields: [(name: String, value: String)]
    /// Nil if the body was not got.
    package var bodyBytes: UInt64?
    /// From the connection to the end.
    package var elapsedMilliseconds: Int64

    package init(
        status: UInt16, fields: [(name: String, value: String)], bodyBytes: UInt64?,
        tookMilliseconds: Int64
    ) {
        self.status = status
        self.fields = fields
        self.bodyBytes = bodyBytes
        self.elapsedMilliseconds = tookMilliseconds
    }

    private func value(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name }?.value
    }

    private var size: String? {
        (bodyBytes ?? value("content-length").flatMap { UInt64($0) }).map(NumberFormat.bytes)
    }

    /// Status, what the cache has to say, type, size and time; then all fields.
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

    private var cacheStyle: TextStyle {
        (value("cache-status") ?? "").contains("; hit") ? .good : .warning
    }

    /// The same in one line.
    package func line(savedAs path: String) -> TextLine {
        TextLine(path, .strong)
            + TextLine(": \(size ?? "0 B") \(value("content-type") ?? "of no type"), ")
            + TextLine(value("cache-status") ?? "no Cache-Status", cacheStyle)
            + TextLine(", \(NumberFormat.duration(milliseconds: elapsedMilliseconds))")
    }

    package var json: JSON {
        [
            "status": JSON(status), "body_bytes": JSON(bodyBytes),
            "elapsed_ms": .number(elapsedMilliseconds),
            "fields": .list(fields.map { [.text($0.name), .text($0.value)] }),
        ]
    }
}
