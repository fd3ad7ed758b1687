/// The variants that a node holds for one URL and how it would serve them: `/admin/v1/entry`.
package struct EntryDocument: AdminDocument {
    /// The URL that was looked up.
    package var url = ""
    /// The key under which the URL's first variant is stored, or would be if there is none.
    package var key = ""
    /// The variants that this node holds.
    package var variants: [Variant] = []
    /// The node ids of the key's owners, the primary first.
    package var owners: [String] = []
    /// True if this node is one of the owners.
    package var isOwner = false

    /// Creates an empty document.
    package init() {}

    /// Returns the URL in a key, without what selects a variant of it: an image's key is its URL,
    /// and a site's lacks the scheme, with `#https` at its end for HTTPS.
    package static func url(ofKey key: String) -> String {
        let base = key.prefix { $0 != "\n" }
        guard base.hasPrefix("//") else { return String(base) }
        let isSecure = base.hasSuffix("#https")
        return (isSecure ? "https:" : "http:") + (isSecure ? base.dropLast(6) : base)
    }

    /// The members.
    package static let fields: [Field] = [
        .required("url", \.url),
        .required("key", \.key),
        .required("variants", \.variants),
        .required("owners", \.owners, "Node ids, the primary owner first", as: .list(of: .id)),
        .required("is_owner", \.isOwner, "True if this node is an owner"),
    ]

    /// The result of a request without cache directives for a variant at this moment.
    package enum ServeDecision: String, CaseIterable, Sendable {
        /// Served as is.
        case fresh
        /// Served although expired, and revalidated in the background.
        case stale
        /// Revalidated at the origin first.
        case revalidate
        /// Fetched in full from the origin.
        case refetch
    }

    /// One stored response.
    package struct Variant: AdminDocument {
        /// The key that the variant is stored under, as text.
        package var key = ""
        /// The name of the variant among those of one URL: hexadecimal digits of a hash of its key
        /// and of the request fields that select it.
        package var name = ""
        /// The tier that serves it, `memory` or `disk`.
        package var tier = "memory"
        /// True if a variant in memory is on disk too.
        package var isAlsoOnDisk = false
        /// The value of Content-Type; empty if there is none.
        package var contentType = ""
        /// The size of the stored body in bytes.
        package var bodyBytes: UInt64 = 0
        /// The status code of the stored response.
        package var status: UInt16 = 200
        /// The value of ETag; `nil` if there is none.
        package var entityTag: String?
        /// The value of Last-Modified; `nil` if there is none.
        package var lastModified: String?
        /// The current age (RFC 9111 §4.2.3) in milliseconds.
        package var ageMilliseconds: Int64 = 0
        /// The remaining freshness in milliseconds; negative once expired.
        package var remainingFreshnessMilliseconds: Int64 = 0
        /// The time in milliseconds since the last validation; `nil` if unknown.
        package var validatedMillisecondsAgo: Int64?
        /// The number of accesses in memory, as in ``HotEntryDocument/accesses``; `nil` if the
        /// variant is not in memory or not among its most requested entries.
        package var memoryAccesses: UInt64?
        /// The number of accesses that the disk tier has recorded; `nil` if the variant is not on
        /// disk.
        package var accesses: UInt64?
        /// The time in milliseconds since the last recorded access; `nil` if not on disk.
        package var lastAccessMillisecondsAgo: Int64?
        /// The invalidation version of the entry: boot epoch, and number of invalidations applied
        /// in it.
        package var invalidationVersion = ""
        /// The origin's cache tags, by which the variant can be purged.
        package var tags: [String] = []
        /// The lower-case names of the request fields that select the variant (RFC 9111 §4.1).
        package var vary: [String] = []
        /// The fields of the stored response, each as name and value.
        package var headerFields: [[String]] = []
        /// The result for a request without cache directives: a raw value of ``ServeDecision``.
        package var decision = ServeDecision.fresh.rawValue
        /// The reason for ``decision``, in words.
        package var reason = ""

        /// Creates a variant with default values.
        package init() {}

        /// The members.
        package static let fields: [Field] = [
            .required("key", \.key),
            .required(
                "variant", \.name, "The parameter variant of /admin/v1/entry/body",
                isLenient: true),
            .required("tier", \.tier, as: .enumeration(["memory", "disk"])),
            .required("also_on_disk", \.isAlsoOnDisk),
            .required("content_type", \.contentType),
            .required("body_bytes", \.bodyBytes),
            .required("status", \.status, as: .integer(100...599)),
            .nullable("etag", \.entityTag),
            .nullable("last_modified", \.lastModified),
            .required("age_ms", \.ageMilliseconds),
            .required(
                "fresh_ms", \.remainingFreshnessMilliseconds,
                "Remaining freshness; negative once stale",
                as: .anyInteger),
            .nullable(
                "validated_ms_ago", \.validatedMillisecondsAgo,
                "Time since the last validation; null if unknown"),
            .nullable(
                "accesses", \.accesses,
                "Accesses recorded on disk; null if the variant is not on disk"),
            .nullable("last_access_ms_ago", \.lastAccessMillisecondsAgo),
            .required(
                "stamp", \.invalidationVersion,
                "Invalidation version: boot epoch, and invalidations applied in it"),
            .required("tags", \.tags),
            .required("vary", \.vary, "Names of the request fields that select the variant"),
            .required(
                "fields", \.headerFields, "Stored header fields as pairs of name and value",
                as: .list(of: .list(of: .string, count: 2...2))),
            .required("verdict", \.decision, as: .enumeration(ServeDecision.self)),
            .required("why", \.reason),
            .nullable(
                "memory_accesses", \.memoryAccesses,
                "Accesses in memory, as /admin/v1/hot estimates them; null if too few"),
        ]
    }
}

/// One of the most accessed memory entries, which `/admin/v1/hot` lists.
package struct HotEntryDocument: ListedDocument {
    /// The entry's key, as text.
    package var key = ""
    /// The URL that the entry was fetched from.
    package var url = ""
    /// The value of Content-Type; empty if there is none.
    package var contentType = ""
    /// The size of the body in bytes.
    package var bodyBytes: UInt64 = 0
    /// The tier: always `memory`.
    package var tier = "memory"
    /// The number of accesses, estimated from a sample and decaying with time.
    package var accesses: UInt64 = 0

    /// Creates an entry without a key.
    package init() {}

    /// The name of the list.
    package static let listName = "entries"

    /// The members.
    package static let fields: [Field] = [
        .required("key", \.key, isLenient: true),
        .required("url", \.url),
        .required("content_type", \.contentType),
        .required("body_bytes", \.bodyBytes),
        .required("tier", \.tier, as: .enumeration(["memory"]), isLenient: true),
        .required("accesses", \.accesses, "Estimated from samples; decays with time"),
    ]
}
