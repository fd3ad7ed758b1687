package import Ground

/// The purge that a PURGE or BAN request requests, by the conventions of common caches.
///
/// - `PURGE /a.jpg`: this URL, as a GET would name it (Squid, Varnish, Fastly).
/// - `PURGE /a/*`: everything below `/a/`, and `PURGE /*` the host (nginx and its cache_purge).
/// - `PURGE /a/.*`: the same, as a regular expression (plug-ins for Varnish).
/// - with Surrogate-Key, Cache-Tag or xkey, or the fields that carry tags here: all responses with
///   any of these tags, and not the URL (xkey of Varnish, Surrogate-Key of Fastly).
/// - with a field of ``PurgeTagPattern``: the same, for the tags of its expression.
/// - with `Fastly-Soft-Purge: 1`, or the tags in xkey-softpurge: soft.
///
/// BAN means the same: Varnish has it for tags and expressions. A URL that itself ends in `/*` or
/// contains `.*` is purged together with all URLs below it; alone it can be purged by a target of
/// the admin port.
package struct PurgeCommand: Hashable, Sendable {
    /// True for a soft purge.
    package let isSoft: Bool
    /// The targets; empty only for a URL that has no canonical form.
    package private(set) var targets: [PurgeTarget]
    /// The name of the response to a GET of the same URL, with the target as received; `nil` if
    /// tags or a prefix are purged, or no site serves the URL.
    private var verbatimName: [UInt8]?

    /// The maximum number of tags of one command.
    package static let tagsMax = 256

    /// Parses a PURGE request.
    ///
    /// - Parameters:
    ///   - isSecure: true if the request came by TLS.
    ///   - authority: the requested host and port.
    ///   - target: the path and query.
    ///   - siteKey: the key of the response to a GET of the same URL; `nil` if no site serves it.
    ///   - lines: the field lines of the request; their extents lie in `bytes`.
    ///   - bytes: the bytes of the request's head.
    ///   - tagFields: the fields that carry tags.
    /// - Throws: ``PurgeCommandFault`` for the first fault found.
    package init(
        isSecure: Bool, authority: [UInt8], target: [UInt8], siteKey: [UInt8]? = nil,
        _ lines: [FieldLine], in bytes: Span<UInt8>, tagFields: [TagField] = TagField.defaults
    ) throws(PurgeCommandFault) {
        let tags = try RequestedTags(lines, in: bytes, tagFields)
        isSoft = try Self.parseSoft(lines, in: bytes) || tags.isSoft
        targets = tags.isEverything ? [.everything] : []
        guard targets.isEmpty else { return }
        do throws(PurgeTargetFault) {
            for tag in tags.tags { targets.append(try .tag(parsing: tag)) }
            guard targets.isEmpty else { return }
            guard target.first == UInt8(ascii: "/") else { throw .url(.hostEmpty(offset: 0)) }
            let origin = Array(isSecure ? "https://".utf8 : "http://".utf8) + authority
            if let prefix = Self.prefix(of: target) {
                targets = [try .prefix(parsing: origin + prefix)]
                return
            }
            let url = origin + target
            verbatimName = siteKey.map { Array(URLName.name(ofKey: $0)) }
            targets = [try .url(parsing: url)]
        } catch {
            // A target that a site serves need not be a valid URL.
            if verbatimName == nil { throw .target(error) }
        }
    }

    /// Returns all targets to purge, each once, including the names under which `sites` store them.
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        let all = targets.expanded(sites)
        guard let own = verbatimName.map(PurgeTarget.url), !all.contains(own) else { return all }
        return all + [own]
    }

    /// Returns the path below which `target` purges everything; `nil` if it purges one URL.
    ///
    /// It ends with a slash and is the longest path whose URLs include all that the target covers.
    private static func prefix(of target: [UInt8]) -> ArraySlice<UInt8>? {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        if let dots = path.indices.first(where: { path[$0...].starts(with: ".*".utf8) }) {
            return path[..<dots].lastIndex(of: UInt8(ascii: "/")).map { path[...$0] }
        }
        let isPrefix = path.count == target.count && path.suffix(2).elementsEqual("/*".utf8)
        return isPrefix ? path.dropLast() : nil
    }

    /// Returns true for `Fastly-Soft-Purge: 1`, false for 0 or without the field.
    private static func parseSoft(
        _ lines: [FieldLine], in bytes: Span<UInt8>
    ) throws(PurgeCommandFault) -> Bool {
        var isSoft: Bool?
        for line in lines
        where bytes.matchesIgnoringCase("fastly-soft-purge", at: line.name.range) {
            guard isSoft == nil, line.value.count == 1 else { throw .softPurgeValue }
            switch bytes[line.value.range.lowerBound] {
            case UInt8(ascii: "0"): isSoft = false
            case UInt8(ascii: "1"): isSoft = true
            default: throw .softPurgeValue
            }
        }
        return isSoft ?? false
    }
}

/// The tags in the fields of a PURGE request.
private struct RequestedTags {
    /// The distinct tags, in order.
    var tags: [[UInt8]]
    /// True if a field asks for a soft purge.
    var isSoft = false
    /// True if a field covers every response, whatever its tags.
    var isEverything = false

    init(
        _ lines: [FieldLine], in bytes: Span<UInt8>, _ fields: [TagField]
    ) throws(PurgeCommandFault) {
        var (patterns, others): ([FieldLine], [FieldLine]) = ([], [])
        for line in lines {
            guard let asksForSoft = PurgeTagPattern.isSoft(bytes, at: line.name.range) else {
                others.append(line)
                continue
            }
            patterns.append(line)
            isSoft = isSoft || asksForSoft
        }
        let listed = CacheTags(others, in: bytes, fields: fields)
        tags = listed.tags
        for line in patterns {
            let value = bytes.copy(line.value.range)
            guard value != PurgeTagPattern.everything else {
                isEverything = true
                continue
            }
            for tag in try PurgeTagPattern.tags(of: value) where !tags.contains(tag) {
                guard tags.count < PurgeCommand.tagsMax else { throw .tooManyTags }
                tags.append(tag)
            }
        }
        // Without a tag the URL would be purged, which was not meant.
        guard patterns.isEmpty || isEverything || !tags.isEmpty else { throw .tagPattern }
        guard listed.droppedCount == 0, tags.count <= PurgeCommand.tagsMax,
            tags.allSatisfy({ $0.count <= CacheTags.tagBytesMax })
        else { throw .tooManyTags }
        guard tags.isEmpty, !isEverything else { return }
        // FOSHttpCache's bans of paths: expressions in fields, which the request line lacks.
        for line in lines where bytes.matchesIgnoringCase("x-url", at: line.name.range) {
            throw .tagPattern
        }
    }
}

/// The reason why a PURGE request is invalid; nothing was purged.
package enum PurgeCommandFault: Error, Hashable, Sendable {
    /// The value of Fastly-Soft-Purge is neither 0 nor 1, or the field comes twice.
    case softPurgeValue
    case tooManyTags
    /// A field of ``PurgeTagPattern`` has an expression that is not a list of tags.
    case tagPattern
    case target(PurgeTargetFault)
}
