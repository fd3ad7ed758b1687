/// `/admin/v1/entry` as who has asked for it reads it; ``EntryDocument`` is what writes it.
package struct EntryReport: Hashable, Sendable, Decodable {
    package struct Variant: Hashable, Sendable, Decodable {
        package var key: String
        package var tier: String
        package var isAlsoOnDisk: Bool
        package var contentType: String
        package var bodyBytes: UInt64
        package var status: UInt16
        package var entityTag: String?
        package var lastModified: String?
        package var ageMilliseconds: Int64
        /// Negative: it has been stale for so long.
        package var remainingFreshnessMilliseconds: Int64
        package var validatedMilliseconds: Int64?
        package var accesses: UInt64?
        package var lastAccessMilliseconds: Int64?
        package var invalidationVersion: String
        package var tags: [String]
        package var vary: [String]
        /// Names and values.
        package var fields: [[String]]
        package var decision: String
        package var reason: String

        private enum CodingKeys: String, CodingKey {
            case key, tier, status, accesses, tags, vary, fields
            case reason = "why"
            case decision = "verdict"
            case invalidationVersion = "stamp"
            case isAlsoOnDisk = "also_on_disk"
            case contentType = "content_type"
            case bodyBytes = "body_bytes"
            case entityTag = "etag"
            case lastModified = "last_modified"
            case ageMilliseconds = "age_ms"
            case remainingFreshnessMilliseconds = "fresh_ms"
            case validatedMilliseconds = "validated_ms_ago"
            case lastAccessMilliseconds = "last_access_ms_ago"
        }
    }

    package var url: String
    package var key: String
    package var variants: [Variant]
    /// By node id, the first owner first.
    package var owners: [String]
    package var isOwner: Bool

    private enum CodingKeys: String, CodingKey {
        case url, key, variants, owners
        case isOwner = "is_owner"
    }
}

/// `/admin/v1/hot` as who has asked for it reads it.
package struct HotReport: Hashable, Sendable, Decodable {
    package struct Entry: Hashable, Sendable, Decodable {
        package var url: String
        package var contentType: String
        package var bodyBytes: UInt64
        package var accesses: UInt64

        private enum CodingKeys: String, CodingKey {
            case url, accesses
            case contentType = "content_type"
            case bodyBytes = "body_bytes"
        }
    }

    /// The hottest first.
    package var entries: [Entry]
}
