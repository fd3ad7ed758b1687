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
