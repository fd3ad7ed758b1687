/// What operators are told of one origin.
package struct OriginRow: Hashable, Sendable {
    /// Host and port: letters, digits and `.-_:[]` only.
    package var origin: String
    /// Connections open or being opened, idle ones included.
    package var connections: Int
    package var idle: Int
    /// Fetches that wait for a connection.
    package var waiting: Int
    /// `closed`, `open` or `half-open`.
    package var circuit: String
    /// Failed fetches since the last whole answer.
    package var failures: Int
    /// Milliseconds until an open circuit lets a fetch through; nil if it is not open.
    package var retryAfterMilliseconds: Int64?

    package init(
        origin: String, connections: Int, idle: Int, waiting: Int, circuit: String,
        failures: Int, retryAfterMilliseconds: Int64?
    ) {
        self.origin = origin
        self.connections = connections
        self.idle = idle
        self.waiting = waiting
        self.circuit = circuit
        self.failures = failures
        self.retryAfterMilliseconds = retryAfterMilliseconds
    }

    /// `{"origins": […]}`, one object a line.
    static func json(_ rows: [OriginRow]) -> String {
        let objects = rows.map { row in
            var fields = [
                "\"origin\":\"\(row.origin)\"", "\"connections\":\(row.connections)",
                "\"idle\":\(row.idle)", "\"waiting\":\(row.waiting)",
                "\"circuit\":\"\(row.circuit)\"", "\"failures\":\(row.failures)",
            ]
            if let milliseconds = row.retryAfterMilliseconds {
                fields.append("\"retry_after_ms\":\(milliseconds)")
            }
            return "{" + fields.joined(separator: ",") + "}"
        }
        return "{\"origins\":[" + objects.map { "\n" + $0 }.joined(separator: ",") + "\n]}\n"
    }
}
