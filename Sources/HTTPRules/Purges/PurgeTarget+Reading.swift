package import Ground

/// What a client writes, checked and in canonical form.
extension PurgeTarget {
    /// The target for the URL that `text` spells, `https://…`, `http://…` or `//…`; the scheme
    /// means nothing beyond its port.
    package static func url(
        parsing text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        .url(try contains(of: text, bytesMax: bytesMax))
    }

    /// The target for all URLs that begin with `text`, `https://HOST[:PORT][/PATH]`.
    ///
    /// Scheme and slashes may be left out; `/`, or no path, is the host.
    package static func prefix(
        parsing text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        guard !text.isEmpty else { throw .url(.empty) }
        guard !text.contains(UInt8(ascii: "?")), !text.contains(UInt8(ascii: "#")) else {
            throw .prefixQuery
        }
        let slash = text.firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
        let isURL = text[slash...].starts(with: "//".utf8)
        let url = isURL ? text : Array("//".utf8) + text
        return prefix(named: try contains(of: url, bytesMax: bytesMax)[...])
    }

    /// The target for all answers with the tag `text`.
    package static func tag(parsing text: [UInt8]) throws(PurgeTargetFault) -> PurgeTarget {
        guard let first = text.first, let last = text.last else { throw .tagEmpty }
        guard text.count <= CacheTags.tagBytesMax else { throw .tagTooLong }
        let isHeld = text.allSatisfy { $0 >= 0x20 && $0 != 0x7F || FieldSyntax.isWhitespace($0) }
        guard isHeld else { throw .tagControl }
        guard !FieldSyntax.isWhitespace(first), !FieldSyntax.isWhitespace(last) else {
            throw .tagWhitespace
        }
        return .tag(text)
    }

    /// The target for what begins with `name`, a host and a path.
    private static func prefix(named name: ArraySlice<UInt8>) -> PurgeTarget {
        let slash = name.firstIndex(of: UInt8(ascii: "/")) ?? name.endIndex
        let path = name[slash...]
        return .prefix(host: Array(name[..<slash]), path: path.count > 1 ? Array(path) : [])
    }

    private static func contains(
        of text: [UInt8], bytesMax: Int
    ) throws(PurgeTargetFault) -> [UInt8] {
        let url = text.starts(with: "//".utf8) ? Array("http:".utf8) + text : text
        var key: [UInt8] = []
        let result = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: bytesMax)
        if case .refused(let refusal) = result { throw .url(refusal) }
        return Array(URLName.name(ofKey: key))
    }

    // MARK: Where sites keep it

    /// The target as it was written; behind it, if they are others, those under whose names this
    /// node has what it answers to that URL, or fetches there.
    ///
    /// An image is kept under its own URL, whatever node it is asked of, at `/v1/image`. What a
    /// site answers is kept under the site's own name, without what the site ignores of the query;
    /// of `*` under the client's host, so that its answers need the origin's URL as a tag
    /// (``EntryTags``) to be found by it.
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        switch self {
        case .everything, .tag: [self]
        case .url(let name):
            PurgeURL(name: name, isPrefix: false).names(sites).map(PurgeTarget.url)
        case .prefix(let host, let path):
            PurgeURL(name: host + (path.isEmpty ? [UInt8(ascii: "/")] : path), isPrefix: true)
                .names(sites).map { Self.prefix(named: $0[...]) }
        }
    }
}

extension [PurgeTarget] {
    /// All targets that ``PurgeTarget/targets(_:)`` makes of these, each once, in their order.
    package func expanded(_ sites: SiteTable) -> [PurgeTarget] {
        var seen: Set<PurgeTarget> = []
        return flatMap { $0.expanded(sites) }.filter { seen.insert($0).inserted }
    }
}

/// Why something cannot be purged, because nothing can be called so.
package enum PurgeTargetFault: Error, Hashable, Sendable {
    case url(URLRefusal)
    /// A prefix with a query or a fragment.
    case prefixQuery
    case tagEmpty
    case tagTooLong
    /// A control byte, which no field value holds.
    case tagControl
    /// White space at an end, which is no part of any tag.
    case tagWhitespace

    /// What is wrong, and what is allowed.
    package var message: String {
        switch self {
        case .url(let refusal): refusal.message
        case .prefixQuery:
            "A prefix is a host, or a host and a path up to a slash or to the path's end, without "
                + "a query and #."
        case .tagEmpty: "The tag is empty; 1 to \(CacheTags.tagBytesMax) bytes are allowed."
        case .tagTooLong:
            "The tag is longer than \(CacheTags.tagBytesMax) bytes, the most that is allowed."
        case .tagControl: "The tag has a control character; no tag of an answer can have one."
        case .tagWhitespace:
            "The tag begins or ends with white space, which is no part of any tag; one tag is "
                + "allowed in each target."
        }
    }
}
