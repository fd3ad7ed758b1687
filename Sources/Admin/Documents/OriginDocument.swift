/// The connections and the circuit breaker of one origin; `/admin/v1/origins` lists all.
package struct OriginDocument: ListedDocument {
    /// The origin's host and port: letters, digits and `.-_:[]` only.
    package var origin = ""
    /// The number of connections open or being opened, including idle ones.
    package var connections = 0
    /// The number of idle connections.
    package var idle = 0
    /// The number of fetches waiting for a connection.
    package var waiting = 0
    /// The state of the circuit breaker: `closed`, `open` or `half-open`.
    package var circuit = "closed"
    /// The number of failed fetches since the last complete response.
    package var failures = 0
    /// The time in milliseconds until an open circuit admits a fetch; `nil` if it is not open.
    package var retryAfterMilliseconds: Int64?

    /// Creates an origin without connections.
    package init() {}

    /// The name of the list.
    package static let listName = "origins"

    /// The members.
    package static let fields: [Field] = [
        .required("origin", \.origin),
        .required("connections", \.connections),
        .required("idle", \.idle),
        .required("waiting", \.waiting, "Fetches waiting for a connection"),
        .required("circuit", \.circuit, as: .enumeration(["closed", "open", "half-open"])),
        .required("failures", \.failures, "Failed fetches since the last complete response"),
        .optional(
            "retry_after_ms", \.retryAfterMilliseconds,
            "Time until an open circuit admits a fetch; absent if it is not open"),
    ]
}
