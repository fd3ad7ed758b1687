/// The variants that a node holds for one URL and how it would serve them: `/admin/v1/entry`.
package struct EntryDocument: Sendable {
    /// The result of a request without cache directives for this variant at this moment.
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
    package struct Variant: Sendable {
        /// The key that the variant is stored under, as text.
        package var key: String
        /// The name of the variant among those of one URL: hexadecimal digits of a hash of its key
        /// and of the request fields that select it.
        package let name: String
        /// True if the variant is in memory.
        package var isInMemory = false
        /// True if the variant is on disk.
        package var isOnDisk = false
        /// The status code of the stored response.
        package var status: UInt16 = 200
        /// The value of Content-Type; empty if there is none.
        package var contentType = ""
        /// The size of the stored body in bytes.
        package var bodyBytes: UInt64 = 0
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
        /// The number of accesses that the disk tier has recorded; `nil` if the variant is not on
        /// disk.
        package var accesses: UInt64?
        /// The time in milliseconds since the last recorded access; `nil` if not on disk.
        package var lastAccessMillisecondsAgo: Int64?
        /// The invalidation version of the entry: boot epoch, and number of invalidations applied
        /// in it.
        package var invalidationVersion = ""
        /// The tags that a purge can name the variant by.
        package var tags: [String] = []
        /// The lower-case names of the request fields that select the variant (RFC 9111 §4.1).
        package var vary: [String] = []
        /// The fields of the stored response.
        package var fields: [(name: String, value: String)] = []
        /// The result for a request without cache directives.
        package var decision = ServeDecision.fresh
        /// The reason for ``decision``, in words.
        package var reason = ""

        /// Creates a variant with default values.
        package init(key: String, name: String) {
            self.key = key
            self.name = name
        }
    }

    /// The URL that was looked up.
    package var url: String
    /// The key of the URL's first variant, where nothing else is known.
    package var key: String
    /// The variants that this node holds.
    package var variants: [Variant]
    /// The node ids of the key's owners, the primary first.
    package var owners: [String]
    /// True if this node is one of the owners.
    package var isOwner: Bool

    /// Creates the document from its parts.
    package init(
        url: String, key: String, variants: [Variant], owners: [String], isOwner: Bool
    ) {
        self.url = url
        self.key = key
        self.variants = variants
        self.owners = owners
        self.isOwner = isOwner
    }

    /// The document as JSON.
    package var json: JSON {
        [
            "url": .text(url), "key": .text(key), "variants": .list(variants.map(\.json)),
            "owners": JSON(owners), "is_owner": .bool(isOwner),
        ]
    }

    static let schema = JSONSchema.object(
        .required("url", JSONSchema.string), .required("key", JSONSchema.string),
        .required("variants", JSONSchema.list(of: Variant.schema)),
        .required("owners", JSONSchema.list(of: JSONSchema.id), "The first owner first"),
        .required("is_owner", JSONSchema.boolean, "This node is one of those who keep it"))
}

extension EntryDocument.Variant {
    fileprivate var json: JSON {
        [
            "key": .text(key), "variant": .text(name), "tier": isInMemory ? "memory" : "disk",
            "also_on_disk": .bool(isInMemory && isOnDisk), "content_type": .text(contentType),
            "body_bytes": JSON(bodyBytes), "status": JSON(status), "etag": JSON(entityTag),
            "last_modified": JSON(lastModified), "age_ms": .number(ageMilliseconds),
            "fresh_ms": .number(remainingFreshnessMilliseconds),
            "validated_ms_ago": JSON(validatedMillisecondsAgo), "accesses": JSON(accesses),
            "last_access_ms_ago": JSON(lastAccessMillisecondsAgo),
            "stamp": .text(invalidationVersion),
            "tags": JSON(tags), "vary": JSON(vary),
            "fields": .list(fields.map { [.text($0.name), .text($0.value)] }),
            "verdict": .text(decision.rawValue), "why": .text(reason),
        ]
    }

    fileprivate static let schema = JSONSchema.object(
        .required("key", JSONSchema.string),
        .required("variant", JSONSchema.string, "What /admin/v1/entry/body calls it"),
        .required("tier", JSONSchema.enumeration(["memory", "disk"])),
        .required("also_on_disk", JSONSchema.boolean), .required("content_type", JSONSchema.string),
        .required("body_bytes", JSONSchema.count),
        .required("status", JSONSchema.integer(100...599)),
        .required("etag", JSONSchema.nullable(JSONSchema.string)),
        .required("last_modified", JSONSchema.nullable(JSONSchema.string)),
        .required("age_ms", JSONSchema.count),
        .required("fresh_ms", ["type": "integer"], "Negative: stale for so long"),
        .required(
            "validated_ms_ago", JSONSchema.nullable(JSONSchema.count),
            "Since the origin was asked"),
        .required("accesses", JSONSchema.nullable(JSONSchema.count), "As the disk has it"),
        .required("last_access_ms_ago", JSONSchema.nullable(JSONSchema.count)),
        .required("stamp", JSONSchema.string, "Boot epoch, and invalidations applied in it"),
        .required("tags", JSONSchema.list(of: JSONSchema.string)),
        .required("vary", JSONSchema.list(of: JSONSchema.string), "What has selected it"),
        .required(
            "fields",
            JSONSchema.list(of: JSONSchema.list(of: JSONSchema.string, count: 2...2)),
            "The stored head"),
        .required(
            "verdict",
            JSONSchema.enumeration(EntryDocument.ServeDecision.allCases.map(\.rawValue))),
        .required("why", JSONSchema.string))
}

/// The most accessed memory entries: `/admin/v1/hot`.
package struct HotEntriesDocument: Sendable {
    /// One memory entry.
    package struct Entry: Sendable {
        /// The entry's key, as text.
        package var key: String
        /// The URL that the entry was fetched from.
        package var url: String
        /// The value of Content-Type; empty if there is none.
        package var contentType: String
        /// The size of the body in bytes.
        package var bodyBytes: UInt64
        /// The number of accesses, estimated from a sample and decaying with time.
        package var accesses: UInt64

        /// Creates an entry from its parts.
        package init(
            key: String, url: String, contentType: String, bodyBytes: UInt64, accesses: UInt64
        ) {
            self.key = key
            self.url = url
            self.contentType = contentType
            self.bodyBytes = bodyBytes
            self.accesses = accesses
        }
    }

    /// The entries, the most accessed first.
    package var entries: [Entry]

    /// Creates the document with `rows` as its entries.
    package init(rows: [Entry]) {
        self.entries = rows
    }

    /// The document as JSON.
    package var json: JSON {
        let rows: [JSON] = entries.map { row in
            [
                "key": .text(row.key), "url": .text(row.url),
                "content_type": .text(row.contentType), "body_bytes": JSON(row.bodyBytes),
                "tier": "memory", "accesses": JSON(row.accesses),
            ]
        }
        return ["entries": .list(rows)]
    }

    static let schema = JSONSchema.object(
        .required(
            "entries",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("key", JSONSchema.string), .required("url", JSONSchema.string),
                    .required("content_type", JSONSchema.string),
                    .required("body_bytes", JSONSchema.count),
                    .required("tier", JSONSchema.enumeration(["memory"])),
                    .required(
                        "accesses", JSONSchema.count, "Estimated; what is long ago counts less")))))
}
