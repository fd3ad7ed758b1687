package import Ground

/// The purge that a PURGE request requests, by the conventions of common caches.
///
/// - `PURGE /a.jpg`: this URL, as a GET would name it (Squid, Varnish, Fastly).
/// - `PURGE /a/*`: everything below `/a/`, and `PURGE /*` the host (nginx and its cache_purge).
/// - with Surrogate-Key, Cache-Tag or xkey, or the fields that carry tags here: all responses with
///   any of these tags, and not the URL (xkey of Varnish, Surrogate-Key of Fastly).
/// - with `Fastly-Soft-Purge: 1`: soft.
///
/// A URL that itself ends in `/*` is purged together with all URLs below it; alone it can be purged
/// by a target of the admin port.
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
        isSoft = try Self.parseSoft(lines, in: bytes)
        targets = []
        let tags = CacheTags(lines, in: bytes, fields: tagFields)
        if tags.droppedCount > 0 || tags.tags.count > Self.tagsMax {
            throw .tooManyTags
        }
        do throws(PurgeTargetFault) {
            for tag in tags.tags { targets.append(try .tag(parsing: tag)) }
            guard targets.isEmpty else { return }
            guard target.first == UInt8(ascii: "/") else { throw .url(.hostEmpty(offset: 0)) }
            let url = Array(isSecure ? "https://".utf8 : "http://".utf8) + authority + target
            let isPrefix =
                target.suffix(2).elementsEqual("/*".utf8)
                && !target.contains(UInt8(ascii: "?"))
            if isPrefix {
                targets = [try .prefix(parsing: url.dropLast())]
                return
            }
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

/// The reason why a PURGE request is invalid; nothing was purged.
package enum PurgeCommandFault: Error, Hashable, Sendable {
    /// The value of Fastly-Soft-Purge is neither 0 nor 1, or the field comes twice.
    case softPurgeValue
    case tooManyTags
    case target(PurgeTargetFault)
}
