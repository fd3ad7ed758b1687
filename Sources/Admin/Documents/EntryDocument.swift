/// What a node holds under one URL, and what it would do with it: `/admin/v1/entry`.
package struct EntryDocument: Sendable {
    /// What a client without wishes of its own would get now.
    package enum ServeDecision: String, CaseIterable, Sendable {
        /// It is given.
        case fresh
        /// It is given though it is no longer fresh, and validated meanwhile.
        case stale
        /// The origin is asked whether it is still good.
        case revalidate
        /// The origin is asked for all of it.
        case refetch
    }

    /// One stored answer.
    package struct Variant: Sendable {
        package var key: String
        /// What the variant is called among those that the node holds under one URL: digits of a
        /// hash of its key and of what has selected it.
        package let name: String
        package var isInMemory = false
        package var isOnDisk = false
        package var status: UInt16 = 200
        package var contentType = ""
        package var bodyBytes: UInt64 = 0
        package var entityTag: String?
        package var lastModified: String?
        package var ageMilliseconds: Int64 = 0
        /// Negative: it has been stale for so long.
        package var remainingFreshnessMilliseconds: Int64 = 0
        /// Nil if that is not known.
        package var validatedMillisecondsAgo: Int64?
        /// As the disk has it; nil if it is not there.
        package var accesses: UInt64?
        package var lastAccessMillisecondsAgo: Int64?
        package var invalidationVersion = ""
        package var tags: [String] = []
        /// Fields of the request that have selected it.
        package var vary: [String] = []
        /// The stored head.
        package var fields: [(name: String, value: String)] = []
        package var decision = ServeDecision.fresh
        /// Why, in words.
        package var reason = ""

        package init(key: String, name: String) {
            self.key = key
            self.name = name
        }
    }

    package var url: String
    /// Of the first variant, where nothing else is known.
    package var key: String
    package var variants: [Variant]
    /// By node id, the first owner first.
    package var owners: [String]
    package var isOwner: Bool

    package init(
        url: String, key: String, variants: [Variant], owners: [String], isOwner: Bool
    ) {
        self.url = url
        self.key = key
        self.variants = variants
        self.owners = owners
        self.isOwner = isOwner
    }

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

/// The entries of memory that are asked for most: `/admin/v1/hot`.
package struct HotEntriesDocument: Sendable {
    package struct Entry: Sendable {
        package var key: String
        /// The URL that its origin was asked for.
        package var url: String
        package var contentType: String
        package var bodyBytes: UInt64
        /// As estimated from a sample; what is long ago counts less.
        package var accesses: UInt64

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

    /// The hottest first.
    package var entries: [Entry]

    package init(rows: [Entry]) {
        self.entries = rows
    }

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
