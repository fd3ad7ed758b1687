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
