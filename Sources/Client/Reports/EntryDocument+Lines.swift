package import Admin

/// The entries of a URL for people.
extension EntryDocument {
    /// Returns the report, each line no wider than `columnsMax`; `nil` for no limit.
    package func lines(columnsMax: Int?) -> [TextLine] {
        var pairs = KeyValueTable()
        pairs.append("url", TextLine(url, .strong))
        if storedURL != url { pairs.append("stored", storedURL) }
        let owned = TextLine(isOwner ? "including this node" : "not this node", .faint)
        pairs.append(
            owners.count == 1 ? "owner" : "owners",
            TextLine(owners.map { String($0.prefix(8)) }.joined(separator: ", ") + "  ") + owned)
        var lines = pairs.lines(columnsMax: columnsMax)
        for (index, variant) in variants.enumerated() {
            lines.append(TextLine())
            if variants.count > 1 {
                lines.append(TextLine("variant \(index + 1) of \(variants.count)", .strong))
            }
            lines += variant.lines(storedURL, columnsMax: columnsMax)
        }
        return lines
    }

    /// The URL that the entry is stored under.
    private var storedURL: String { Self.url(ofKey: key) }
}

extension EntryDocument.Variant {
    /// Returns the lines of an entry; its URL is left out if it is `known`.
    fileprivate func lines(_ known: String, columnsMax: Int?) -> [TextLine] {
        var pairs = KeyValueTable()
        let url = EntryDocument.url(ofKey: key)
        if url != known { pairs.append("stored", url) }
        pairs.append("now", TextLine(decision, style) + TextLine(": \(reason)"))
        pairs.append("tier", isAlsoOnDisk ? "\(tier) and disk" : tier)
        pairs.append("response", "\(status) \(contentType), \(NumberFormat.bytes(bodyBytes))")
        var age = "\(NumberFormat.duration(milliseconds: ageMilliseconds)); "
        let remaining = max(-.max, remainingFreshnessMilliseconds)
        let duration = NumberFormat.duration(milliseconds: abs(remaining))
        age += remaining >= 0 ? "fresh for another \(duration)" : "stale for \(duration)"
        if let validatedMillisecondsAgo {
            age += "; validated \(NumberFormat.ago(milliseconds: validatedMillisecondsAgo))"
        }
        pairs.append("age", age)
        if let use = useText { pairs.append("use", use) }
        if let entityTag { pairs.append("etag", entityTag) }
        if let lastModified { pairs.append("modified", lastModified) }
        if !tags.isEmpty { pairs.append("tags", tags.joined(separator: " ")) }
        if !vary.isEmpty { pairs.append("vary", vary.joined(separator: ", ")) }
        pairs.append("version", invalidationVersion)
        return pairs.lines(columnsMax: columnsMax)
    }

    /// The accesses as in the list of the most requested entries, and those recorded on disk; `nil`
    /// if neither is known.
    private var useText: String? {
        var parts: [String] = []
        if let memoryAccesses {
            parts.append(
                "\(NumberFormat.plural(memoryAccesses, "access", "accesses")) in memory, estimated")
        }
        if let accesses {
            let last = lastAccessMillisecondsAgo.map {
                ", last \(NumberFormat.ago(milliseconds: $0))"
            }
            parts.append(
                "\(NumberFormat.plural(accesses, "access", "accesses")) on disk\(last ?? "")")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
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
        headerFields.map { field in
            TextLine(field.first ?? "", .faint)
                + TextLine(": \(field.dropFirst().joined(separator: ", "))")
        }
    }
}
