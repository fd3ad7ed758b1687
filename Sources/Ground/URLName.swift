/// A URL in the form that purges compare: host, port, path and query, without the scheme.
///
/// The key of an entry contains a name. Its tags may contain further ones: the canonical spelling,
/// the URL that was requested from the origin, the target of redirects, the URL of the original.
/// Such a tag begins with a byte that no field value contains (RFC 9110 §5.5), so that neither an
/// origin nor a client can send it as a tag. A mark for a URL, a prefix or a host is checked
/// against names in keys and tags alike.
package enum URLName {
    /// The first byte of a tag that holds a URL name; no other tag starts with it.
    package static let tagPrefix: UInt8 = 0

    /// Returns the name in an entry's key.
    ///
    /// The key of an image is `http://…` or `https://…`. The key of a site's response is `//…`,
    /// with `#https` appended if it was requested over TLS. The key of a variant has a line feed
    /// and the selecting field values appended.
    package static func name(ofKey key: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var start = key.startIndex
        var slashes = 0
        for (index, byte) in zip(key.indices, key) where byte == UInt8(ascii: "/") {
            slashes += 1
            guard slashes == 2 else { continue }
            start = index + 1
            break
        }
        // Neither a canonical URL nor a request target contains one of these.
        let end = key[start...].firstIndex { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "\n") }
        return key[start..<(end ?? key.endIndex)]
    }

    /// Returns the name in an entry's key, given as an array.
    package static func name(ofKey key: [UInt8]) -> ArraySlice<UInt8> { name(ofKey: key[...]) }

    /// Returns the keys that have `name`, without those of variants: of an image and of a site's
    /// response, for http and https.
    package static func keys(of name: [UInt8]) -> [[UInt8]] {
        ["http://", "https://", "//"].map { Array($0.utf8) + name }
            + [Array("//".utf8) + name + Array("#https".utf8)]
    }

    /// Returns the tag that holds `name`.
    package static func tag(_ name: ArraySlice<UInt8>) -> [UInt8] { [tagPrefix] + name }

    /// Returns the name that `tag` holds, or `nil` if the tag came from an origin.
    package static func name(inTag tag: [UInt8]) -> ArraySlice<UInt8>? {
        tag.first == tagPrefix ? tag[1...] : nil
    }

    /// Returns a 32-bit hash that distinguishes most names.
    ///
    /// The hash is not keyed. An attacker who makes two names collide only causes the marks of one
    /// to be kept while the other is stored.
    package static func fingerprint(_ name: ArraySlice<UInt8>) -> UInt32 {
        UInt32(truncatingIfNeeded: XXH64.hash(name.span, seed: 0))
    }

    /// Returns the fingerprints of all names of an entry, in its key and its tags.
    package static func fingerprints(ofKey key: [UInt8], tags: [[UInt8]]) -> [UInt32] {
        [fingerprint(name(ofKey: key))] + tags.compactMap { name(inTag: $0).map(fingerprint) }
    }
}

/// The scope of a purge: names that entries have in their keys or tags, compared byte by byte
/// (``URLName``).
///
/// The same value is used from the request to the mark. A client's target is validated and brought
/// into canonical form, the names of a site are added to it, and the log record, the mark and the
/// receipt then hold it unchanged.
package enum PurgeTarget: Hashable, Sendable {
    /// One URL with all its variants.
    case url([UInt8])
    /// A whole host, or a path on it with all paths below it, up to a segment boundary.
    ///
    /// `/a` covers `/a`, `/a?…` and `/a/…`, but not `/ab`; `/a/` covers all paths below it. `host`
    /// includes its port if one was written that is not the scheme's default. Without a port and
    /// without a path, it covers the host on every port.
    case prefix(host: [UInt8], path: [UInt8])
    /// Every entry with this tag.
    case tag([UInt8])
    /// Every entry.
    case everything

    /// The kind of target, with its number in log records and on disk.
    package enum Kind: UInt8, CaseIterable, Sendable {
        case url = 1
        case prefix, tag, everything
    }

    /// The kind of this target.
    package var kind: Kind {
        switch self {
        case .url: .url
        case .prefix: .prefix
        case .tag: .tag
        case .everything: .everything
        }
    }
}
