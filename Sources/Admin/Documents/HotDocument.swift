/// The entries of memory that are asked for most: `/admin/v1/hot`.
package struct HotDocument: Sendable {
    package struct Row: Sendable {
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
    package var rows: [Row]

    package init(rows: [Row]) {
        self.rows = rows
    }

    package var json: JSON {
        let rows: [JSON] = rows.map { row in
            [
                "key": .text(row.key), "url": .text(row.url),
                "content_type": .text(row.contentType), "body_bytes": JSON(row.bodyBytes),
                "tier": "memory", "accesses": JSON(row.accesses),
            ]
        }
        return ["entries": .list(rows)]
    }

    static let shape = Shape.object(
        .has(
            "entries",
            Shape.list(
                of: Shape.object(
                    .has("key", Shape.string), .has("url", Shape.string),
                    .has("content_type", Shape.string), .has("body_bytes", Shape.count),
                    .has("tier", Shape.choice(["memory"])),
                    .has("accesses", Shape.count, "Estimated; what is long ago counts less")))))
}
