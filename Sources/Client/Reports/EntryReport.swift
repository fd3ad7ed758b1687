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

/// What a node holds under a URL, for people.
extension EntryReport {
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

    private var style: TextStyle {
        switch decision {
        case "fresh": .good
        case "stale": .warning
        default: .bad
        }
    }

    /// The stored head, a field a line.
    package var fieldLines: [TextLine] {
        fields.map { field in
            TextLine(field.first ?? "", .faint)
                + TextLine(": \(field.dropFirst().joined(separator: ", "))")
        }
    }
}
