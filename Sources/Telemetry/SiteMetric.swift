/// Everything that is counted per site; the raw value is its place among the counters.
package enum SiteMetric: Int, CaseIterable, Sendable {
    /// Answered from memory or disk, fresh.
    case hits
    /// Answered with what was stored and is no longer fresh.
    case stale
    /// Answered with what the origin was asked for and that could have been stored, by a fetch of
    /// this request or by one that it waited for.
    case misses
    /// Passed to the origin and back: what no cache may answer.
    case passes
    /// Answered by the node itself: refused, or for want of an answer.
    case refusals
    /// Of bodies that came from the origin.
    case originBytes
}

/// One family of metrics per site under one Prometheus name.
package struct SiteMetricFamily: Sendable {
    /// The Prometheus name, unit and `_total` included; all of them are counters.
    package let name: String
    /// The label beside `site` that tells the members apart; empty if there is one member.
    package let label: String
    /// The metrics with their values of the label.
    package let members: [(metric: SiteMetric, label: String)]
    /// One line for the operator, without a full stop.
    package let meaning: String
    /// What to do about a value that looks wrong.
    package let advice: String

    /// Every family once; every ``SiteMetric`` is a member of exactly one.
    package static let table: [SiteMetricFamily] = [
        SiteMetricFamily(
            name: "nuthatch_site_requests_total", label: "cache",
            members: [
                (.hits, "hit"), (.stale, "stale"), (.misses, "miss"), (.passes, "pass"),
                (.refusals, "none"),
            ],
            meaning: "Requests for a site by how the cache took part in the answer",
            advice: "Many passes: look at Cache-Control, Set-Cookie and methods of the site."),
        SiteMetricFamily(
            name: "nuthatch_site_origin_received_bytes_total", label: "",
            members: [(.originBytes, "")],
            meaning: "Bytes of bodies received from a site's origin",
            advice: "Growth without misses is what is passed and not stored."),
    ]
}
