import Ground

/// What a record of a purge says is covered: names that entries have in their keys or their tags,
/// compared byte by byte (``URLName``).
package enum PurgeName: Hashable, Sendable {
    case url([UInt8])
    /// `host` with its port, if one was written that is not the scheme's; a whole host without a
    /// path.
    case prefix(host: [UInt8], path: [UInt8])
    case tag([UInt8])
    case everything

    /// The names of `targets`, each once, in their order.
    package static func names(_ targets: [PurgeTarget], _ sites: SiteTable) -> [PurgeName] {
        var names: [PurgeName] = []
        var seen: Set<PurgeName> = []
        for target in targets {
            for name in target.names(sites) where seen.insert(name).inserted { names.append(name) }
        }
        return names
    }
}

extension PurgeTarget {
    /// The name as it was written; behind it, if they are others, those under which this node has
    /// what it answers to that URL, or fetches there.
    ///
    /// An image is kept under its own URL, whatever node it is asked of, at `/v1/image`. What a
    /// site answers is kept under the site's own name, without what the site ignores of the query;
    /// of `*` under the client's host, so that its answers need the origin's URL as a tag
    /// (``EntryTags``) to be found by it.
    package func names(_ sites: SiteTable) -> [PurgeName] {
        switch self {
        case .everything: return [.everything]
        case .tag(let tag): return [.tag(tag)]
        case .url(let key):
            return PurgedURL(key: key, takesBelow: false).names(sites).map(PurgeName.url)
        case .prefix(let key):
            return PurgedURL(key: key, takesBelow: true).names(sites).map { name in
                let slash = name.firstIndex(of: UInt8(ascii: "/")) ?? name.endIndex
                let path = name[slash...]
                return .prefix(host: Array(name[..<slash]), path: path.count > 1 ? Array(path) : [])
            }
        }
    }
}
