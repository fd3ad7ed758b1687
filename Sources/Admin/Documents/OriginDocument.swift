/// The connections and the circuit breaker of one origin.
package struct OriginDocument: Hashable, Sendable {
    /// The origin's host and port: letters, digits and `.-_:[]` only.
    package var origin: String
    /// The number of connections open or being opened, including idle ones.
    package var connections: Int
    /// The number of idle connections.
    package var idle: Int
    /// The number of fetches waiting for a connection.
    package var waiting: Int
    /// The state of the circuit breaker: `closed`, `open` or `half-open`.
    package var circuit: String
    /// The number of failed fetches since the last complete response.
    package var failures: Int
    /// The time in milliseconds until an open circuit admits a fetch; `nil` if it is not open.
    package var retryAfterMilliseconds: Int64?

    /// Creates a row from its parts.
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

    /// Returns `{"origins": […]}`, one object per line.
    package static func json(_ rows: [OriginDocument]) -> JSON {
        ["origins": .list(rows.map(\.json))]
    }

    private var json: JSON {
        var members = [
            JSON.Member("origin", .text(origin)), JSON.Member("connections", JSON(connections)),
            JSON.Member("idle", JSON(idle)), JSON.Member("waiting", JSON(waiting)),
            JSON.Member("circuit", .text(circuit)), JSON.Member("failures", JSON(failures)),
        ]
        if let retryAfterMilliseconds {
            members.append(JSON.Member("retry_after_ms", JSON(retryAfterMilliseconds)))
        }
        return .object(members)
    }

    static let schema = JSONSchema.object(
        .required(
            "origins",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("origin", JSONSchema.string),
                    .required("connections", JSONSchema.count),
                    .required("idle", JSONSchema.count),
                    .required("waiting", JSONSchema.count, "Fetches that wait for a connection"),
                    .required("circuit", JSONSchema.enumeration(["closed", "open", "half-open"])),
                    .required("failures", JSONSchema.count, "Since the last whole answer"),
                    .optional("retry_after_ms", JSONSchema.count, "Until an open circuit is tried"))
            )))
}
