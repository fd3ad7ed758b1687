/// What operators are told of one origin.
package struct OriginDocument: Hashable, Sendable {
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
