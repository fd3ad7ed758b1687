/// A URL as purges compare it: host, port, path and query, whatever the scheme.
///
/// An entry has the name in its key, and further ones as tags: the canonical spelling, the URL that
/// the origin was asked for, that to which redirects led, that of the original. Such a tag begins
/// with a byte that no field value holds (RFC 9110 §5.5), so that no origin and no client can name
/// it as a tag, and a mark of a URL, a prefix or a host is held against it as against the key.
package enum URLName {
    /// The first byte of a tag that holds a name, and of no other tag.
    package static let tagPrefix: UInt8 = 0

    /// The name in an entry's key: `http://…` or `https://…` of an image, `//…` of a site's answer,
    /// with `#https` behind it if that was asked for encrypted; of a variant a line feed follows,
    /// and what selects it.
    package static func name(ofKey key: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var start = key.startIndex
        var slashes = 0
        for (index, byte) in zip(key.indices, key) where byte == UInt8(ascii: "/") {
            slashes += 1
            guard slashes == 2 else { continue }
            start = index + 1
            break
        }
        // Neither a canonical URL nor a request target holds one of these.
        let end = key[start...].firstIndex { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "\n") }
        return key[start..<(end ?? key.endIndex)]
    }

    /// The same of a key that stands alone.
    package static func name(ofKey key: [UInt8]) -> ArraySlice<UInt8> { name(ofKey: key[...]) }

    /// The keys that have `name` and are those of no variant: an image's and a site's answer's, for
    /// http and https.
    package static func keys(of name: [UInt8]) -> [[UInt8]] {
        ["http://", "https://", "//"].map { Array($0.utf8) + name }
            + [Array("//".utf8) + name + Array("#https".utf8)]
    }

    /// The tag that holds `name`.
    package static func tag(_ name: ArraySlice<UInt8>) -> [UInt8] { [tagPrefix] + name }

    /// The name that `tag` holds; nil if it is an origin's tag.
    package static func name(inTag tag: [UInt8]) -> ArraySlice<UInt8>? {
        tag.first == tagPrefix ? tag[1...] : nil
    }

    /// 32 bits that tell names apart, mostly.
    ///
    /// Nothing secret is in them: whoever makes two names with one fingerprint has the marks of one
    /// kept while the other is stored.
    package static func fingerprint(_ name: ArraySlice<UInt8>) -> UInt32 {
        UInt32(truncatingIfNeeded: XXH64.hash(name.span, seed: 0))
    }

    /// Those of all names of an entry, in its key and its tags.
    package static func fingerprints(ofKey key: [UInt8], tags: [[UInt8]]) -> [UInt32] {
        [fingerprint(name(ofKey: key))] + tags.compactMap { name(inTag: $0).map(fingerprint) }
    }
}

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
