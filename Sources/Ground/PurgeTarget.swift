/// What a purge covers: names that entries have in their keys or their tags, compared byte by byte
/// (``URLName``).
///
/// The same from the request to the mark: a client's target is checked and written in canonical
/// form, a site's own names are added to it, and the record of the log, the mark and the receipt
/// say it as it is then.
package enum PurgeTarget: Hashable, Sendable {
    /// One URL with all its variants.
    case url([UInt8])
    /// A whole host, or with a path that path and all below it, up to a segment's boundary.
    ///
    /// `/a` is `/a`, `/a?…` and `/a/…`, and not `/ab`; `/a/` is all below it. `host` has its port
    /// if one was written that is not the scheme's; one without a port is the host on every port,
    /// where there is no path.
    case prefix(host: [UInt8], path: [UInt8])
    case tag([UInt8])
    case everything

    /// The kind of target, with its number in records and on disk.
    package enum Kind: UInt8, CaseIterable, Sendable {
        case url = 1
        case prefix, tag, everything
    }

    package var kind: Kind {
        switch self {
        case .url: .url
        case .prefix: .prefix
        case .tag: .tag
        case .everything: .everything
        }
    }
}
