/// The traffic of the last hour at intervals of 10 s: `/admin/v1/history`.
///
/// All columns have the same length, at most ``TrafficHistory/intervalsMax``; each value is the
/// amount of one interval, the oldest first. Intervals are of the node's uptime, without gaps.
package struct HistoryDocument: AdminDocument {
    /// The length of an interval in milliseconds.
    package var intervalMilliseconds: Int64 = 10_000
    /// The uptime in milliseconds at the end of the newest interval.
    package var newestMilliseconds: Int64 = 0
    /// The responses.
    package var requests: [UInt64] = []
    /// The responses that needed no body from an origin for themselves.
    package var hits: [UInt64] = []
    /// The responses fetched from an origin.
    package var misses: [UInt64] = []
    /// The 4xx responses.
    package var clientErrors: [UInt64] = []
    /// The 5xx responses.
    package var serverErrors: [UInt64] = []
    /// The bytes sent to clients, heads included.
    package var sentBytes: [UInt64] = []
    /// The body bytes received from origins.
    package var originBytes: [UInt64] = []
    /// The median of the response times in microseconds; 0 without responses.
    package var medianMicroseconds: [UInt64] = []
    /// The 99th percentile of the response times in microseconds; 0 without responses.
    package var percentile99Microseconds: [UInt64] = []
    /// The failed fetches.
    package var originFailed: [UInt64] = []

    /// Creates a history without intervals.
    package init() {}

    /// The members.
    package static let fields: [Field] = [
        .required("interval_ms", \.intervalMilliseconds),
        .required(
            "newest_ms", \.newestMilliseconds, "The uptime at the end of the newest interval"),
        .required("requests", \.requests, "Responses per interval, the oldest first"),
        .required("hits", \.hits, "Responses that needed no body from an origin for themselves"),
        .required("misses", \.misses, "Responses fetched from an origin"),
        .required("errors_4xx", \.clientErrors),
        .required("errors_5xx", \.serverErrors),
        .required("sent_bytes", \.sentBytes),
        .required("origin_bytes", \.originBytes, "Body bytes received from origins"),
        .required("p50_us", \.medianMicroseconds, "0 without responses"),
        .required("p99_us", \.percentile99Microseconds, "0 without responses"),
        .required("origin_failed", \.originFailed, "Failed fetches"),
    ]
}
