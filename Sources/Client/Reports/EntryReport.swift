/// The document of `/admin/v1/entry` as a client decodes it; ``EntryDocument`` encodes it.
package struct EntryReport: Hashable, Sendable, Decodable {
    /// A stored entry.
    package struct Variant: Hashable, Sendable, Decodable {
        /// The key.
        package var key: String
        /// The tier, `memory` or `disk`.
        package var tier: String
        /// True if an entry in memory is also on disk.
        package var isAlsoOnDisk: Bool
        /// The media type.
        package var contentType: String
        /// The size of the body.
        package var bodyBytes: UInt64
        /// The status.
        package var status: UInt16
        /// The entity tag; `nil` for none.
        package var entityTag: String?
        /// The Last-Modified field; `nil` for none.
        package var lastModified: String?
        /// The age (RFC 9111 §4.2.3).
        package var ageMilliseconds: Int64
        /// The remaining freshness; negative for the time since it became stale.
        package var remainingFreshnessMilliseconds: Int64
        /// The time since the origin validated it; `nil` if unknown.
        package var validatedMilliseconds: Int64?
        /// The number of accesses as the disk counts them; `nil` if it is not on disk.
        package var accesses: UInt64?
        /// The time since the last access as the disk records it; `nil` if it is not on disk.
        package var lastAccessMilliseconds: Int64?
        /// The boot epoch and the number of invalidations applied in it.
        package var invalidationVersion: String
        /// The tags.
        package var tags: [String]
        /// The request fields that select it.
        package var vary: [String]
        /// The stored header fields as pairs of name and value.
        package var fields: [[String]]
        /// The decision that a request would get: `fresh`, `stale`, `revalidate` or `refetch`.
        package var decision: String
        /// The reason for the decision.
        package var reason: String

        /// The member names of the document.
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

    /// The URL.
    package var url: String
    /// The key under which the URL is stored.
    package var key: String
    /// The stored entries.
    package var variants: [Variant]
    /// The ids of the owners, the first owner first.
    package var owners: [String]
    /// True if the queried node is an owner.
    package var isOwner: Bool

    /// The member names of the document.
    private enum CodingKeys: String, CodingKey {
        case url, key, variants, owners
        case isOwner = "is_owner"
    }
}

/// The document of `/admin/v1/hot` as a client decodes it.
package struct HotReport: Hashable, Sendable, Decodable {
    /// A frequently requested entry.
    package struct Entry: Hashable, Sendable, Decodable {
        /// The URL.
        package var url: String
        /// The media type.
        package var contentType: String
        /// The size of the body.
        package var bodyBytes: UInt64
        /// The number of recent accesses.
        package var accesses: UInt64

        /// The member names of the document.
        private enum CodingKeys: String, CodingKey {
            case url, accesses
            case contentType = "content_type"
            case bodyBytes = "body_bytes"
        }
    }

    /// The entries, the most requested first.
    package var entries: [Entry]
}

/// The entries of a URL for people.
extension EntryReport {
    /// Returns the report, each line no wider than `columnsMax`; `nil` for no limit.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var pairs = KeyValueTable()
        pairs.append("url", TextLine(url, .strong))
        if key != url { pairs.append("key", key) }
        let owned = TextLine(isOwner ? "this node is one" : "this node is none", .faint)
        pairs.append(
            owners.count == 1 ? "owner" : "owners",
            TextLine(owners.map { String($0.prefix(8)) }.joined(separator: ", ") + "  ") + owned)
        var lines = pairs.lines(columnsMax: columnsMax)
        for (index, variant) in variants.enumerated() {
            lines.append(TextLine())
            if variants.count > 1 {
                lines.append(TextLine("variant \(index + 1) of \(variants.count)", .strong))
            }
            lines += variant.lines(isKeyKnown: variant.key == key, columnsMax: columnsMax)
        }
        return lines
    }
}

extension EntryReport.Variant {
    /// Returns the lines of an entry; the key is left out if it is known.
    fileprivate func lines(isKeyKnown: Bool, columnsMax: Int?) -> [TextLine] {
        var pairs = KeyValueTable()
        if !isKeyKnown { pairs.append("key", key) }
        pairs.append("now", TextLine(decision, style) + TextLine(": \(reason)"))
        pairs.append("tier", isAlsoOnDisk ? "\(tier) and disk" : tier)
        pairs.append("answer", "\(status) \(contentType), \(NumberFormat.bytes(bodyBytes))")
        var age = "\(NumberFormat.duration(milliseconds: ageMilliseconds)); "
        let remaining = max(-.max, remainingFreshnessMilliseconds)
        let duration = NumberFormat.duration(milliseconds: abs(remaining))
        age += remaining >= 0 ? "fresh for \(duration) more" : "stale for \(duration)"
        if let validatedMilliseconds {
            age += "; origin asked \(NumberFormat.ago(milliseconds: validatedMilliseconds))"
        }
        pairs.append("age", age)
        if let accesses {
            let last = lastAccessMilliseconds.map { ", last \(NumberFormat.ago(milliseconds: $0))" }
            pairs.append(
                "use", "\(NumberFormat.plural(accesses, "access", "accesses")) on disk\(last ?? "")"
            )
        }
        if let entityTag { pairs.append("etag", entityTag) }
        if let lastModified { pairs.append("modified", lastModified) }
        if !tags.isEmpty { pairs.append("tags", tags.joined(separator: " ")) }
        if !vary.isEmpty { pairs.append("vary", vary.joined(separator: ", ")) }
        pairs.append("stamp", invalidationVersion)
        return pairs.lines(columnsMax: columnsMax)
    }

    /// The style of the decision.
    private var style: TextStyle {
        switch decision {
        case "fresh": .good
        case "stale": .warning
        default: .bad
        }
    }

    /// The stored head, one field per line.
    package var fieldLines: [TextLine] {
        fields.map { field in
            TextLine(field.first ?? "", .faint)
                + TextLine(": \(field.dropFirst().joined(separator: ", "))")
        }
    }
}
