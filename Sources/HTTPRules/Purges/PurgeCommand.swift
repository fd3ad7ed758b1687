package import Ground

/// What a PURGE request asks for, by the conventions of caches that clients are written for.
///
/// - `PURGE /a.jpg`: this URL, as a GET would name it (Squid, Varnish, Fastly).
/// - `PURGE /a/*`: all below `/a/`, and `PURGE /*` the host (nginx and its cache_purge).
/// - with Surrogate-Key, Cache-Tag or xkey, or what else carries the tags of answers here: all
///   answers with any of these tags, and not the URL (xkey of Varnish, Surrogate-Key of Fastly).
/// - with `Fastly-Soft-Purge: 1`: soft.
///
/// A URL that itself ends in `/*` goes with all its neighbours; alone it is purged by a target of
/// the admin port.
package struct PurgeCommand: Hashable, Sendable {
    package let isSoft: Bool
    /// Empty only for a URL that has no canonical form.
    package private(set) var targets: [PurgeTarget]
    /// The name of what a GET of the same URL is answered with, byte by byte as it was sent; nil if
    /// the URL is not what is to be purged, or no site answers to it.
    private var verbatimName: [UInt8]?

    /// Tags of one command at most.
    package static let tagsMax = 256

    /// Reads a request for `target`, path and query, at `authority`, whose field lines lie in
    /// `bytes`.
    ///
    /// `siteKey` is the key of what a GET is answered with, if a site answers to it.
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
            // What a site is asked need not be what any URL is.
            if verbatimName == nil { throw .target(error) }
        }
    }

    /// All that is to be purged, each once, under the names by which `sites` keep it.
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        let all = targets.expanded(sites)
        guard let own = verbatimName.map(PurgeTarget.url), !all.contains(own) else { return all }
        return all + [own]
    }

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

/// Why a PURGE request cannot be followed; nothing was purged.
package enum PurgeCommandFault: Error, Hashable, Sendable {
    /// Fastly-Soft-Purge is neither 0 nor 1.
    case softPurgeValue
    case tooManyTags
    case target(PurgeTargetFault)
}
