/// The connections, the circuit breaker and the failures of one origin; `/admin/v1/origins` lists
/// all.
package struct OriginDocument: ListedDocument {
    /// The origin's host and port: letters, digits and `.-_:[]` only.
    package var origin = ""
    /// The URL: scheme, host and port.
    package var url = ""
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
    /// The number of fetches that have ended, complete or failed.
    package var fetches: UInt64 = 0
    /// The number of failed fetches.
    package var failed: UInt64 = 0
    /// The number of body bytes received.
    package var receivedBytes: UInt64 = 0
    /// The number of failed fetches by reason; reasons without failures are left out.
    package var failuresByReason = NamedCounts()
    /// The last failure; `nil` if none is known.
    package var lastError: LastErrorDocument?
    /// The health: a raw value of ``OriginHealth``, or one that only newer versions know.
    package var health = OriginHealth.ok.rawValue

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
        .required(
            "fetches", \.fetches, "Fetches that have ended, complete or failed", isLenient: true),
        .required("failed", \.failed, "Failed fetches", isLenient: true),
        .required("received_bytes", \.receivedBytes, "Body bytes received", isLenient: true),
        .required(
            "failures_by_reason", \.failuresByReason,
            "Failed fetches by reason, as in nuthatch_origin_failures_total", isLenient: true),
        .nullable("last_error", \.lastError, "The last failure; null if there was none"),
        .required("health", \.health, as: .enumeration(OriginHealth.self), isLenient: true),
        .required("url", \.url, "Scheme, host and port", isLenient: true),
    ]
}

/// The health of an origin or of a site, as the recent fetches show it.
package enum OriginHealth: String, CaseIterable, Sendable {
    /// Fetches succeed, or nothing is known.
    case ok
    /// A considerable share of the recent fetches failed.
    case failing
    /// Nothing is fetched, because the circuit is open, or no recent fetch succeeded.
    case down
}

/// The last failure of an origin.
package struct LastErrorDocument: AdminDocument {
    /// The reason, as in `nuthatch_origin_failures_total`.
    package var reason = ""
    /// The failure as a clause.
    package var detail = ""
    /// The time in milliseconds since the failure.
    package var millisecondsAgo: Int64 = 0

    /// Creates an empty document.
    package init() {}

    /// Creates the document of a failure.
    package init(reason: String, detail: String, millisecondsAgo: Int64) {
        self.reason = reason
        self.detail = detail
        self.millisecondsAgo = millisecondsAgo
    }

    /// The members.
    package static let fields: [Field] = [
        .required("reason", \.reason, "As in nuthatch_origin_failures_total"),
        .required("detail", \.detail, "The failure as a clause, as in the log"),
        .required("ago_ms", \.millisecondsAgo),
    ]
}

/// The traffic and the health of one site; `/admin/v1/sites` lists all.
package struct SiteDocument: ListedDocument {
    /// The name of the site; `images` for images that clients request by URL.
    package var site = ""
    /// The number of responses by source.
    package var requests = SourceCounts()
    /// The body bytes sent by source.
    package var bytes = SourceCounts()
    /// The number of responses by status class.
    package var responses = StatusCounts()
    /// The body bytes received from the site's origin.
    package var originReceivedBytes: UInt64 = 0
    /// The URLs of the site's origins.
    package var origins: [String] = []
    /// The health: a raw value of ``OriginHealth``, or one that only newer versions know.
    package var health = OriginHealth.ok.rawValue
    /// The last failure of a fetch from one of ``origins``; `nil` if none is known.
    package var lastError: LastErrorDocument?

    /// Creates a site without traffic.
    package init() {}

    /// The name of the list.
    package static let listName = "sites"
    /// The name of the row of images that clients request by URL.
    package static let imagesName = "images"

    /// The members.
    package static let fields: [Field] = [
        .required("site", \.site, "images for images that clients request by URL"),
        .required("requests", \.requests, "Responses by source"),
        .required("bytes", \.bytes, "Body bytes sent by source"),
        .required("responses", \.responses, "Responses by status class"),
        .required("origin_received_bytes", \.originReceivedBytes),
        .required("origins", \.origins),
        .required("health", \.health, as: .enumeration(OriginHealth.self)),
        .nullable("last_error", \.lastError, "The last failed fetch; null if there was none"),
    ]
}
