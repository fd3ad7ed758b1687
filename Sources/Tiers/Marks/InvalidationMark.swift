package import Ground

/// A recorded invalidation: covers entries with a given target whose requests began earlier
/// (Design, "Versions and marks").
package struct InvalidationMark: Hashable, Sendable {
    /// The entries that the mark covers.
    package var target: PurgeTarget
    /// True if covered entries become stale, false if they become unusable.
    package var isSoft: Bool
    /// The position of the invalidation in the order of this node.
    package var version: InvalidationVersion

    /// Creates a mark from its parts.
    package init(_ target: PurgeTarget, isSoft: Bool, version: InvalidationVersion) {
        self.target = target
        self.isSoft = isSoft
        self.version = version
    }
}

extension InvalidationMark {
    /// The effect of a mark on an entry.
    package enum Effect: Hashable, Sendable {
        /// The entry is never served again.
        case purged
        /// The entry is served only after revalidation.
        case stale
    }

    /// Returns the effect on an entry whose request began at `version`.
    ///
    /// - Returns: `nil` if the target does not cover the entry, or the mark is not later than
    ///   `version`.
    package func effect(on key: [UInt8], tags: [[UInt8]], version: InvalidationVersion) -> Effect? {
        guard self.version > version, covers(key, tags) else { return nil }
        return isSoft ? .stale : .purged
    }

    private func covers(_ key: [UInt8], _ tags: [[UInt8]]) -> Bool {
        switch target {
        case .url(let url): Self.names(key, tags).contains { $0.elementsEqual(url) }
        case .tag(let tag): tags.contains(tag)
        case .everything: true
        case .prefix(let host, let path):
            Self.names(key, tags).contains {
                $0.begins(with: host + path, atPort: path.isEmpty)
            }
        }
    }

    /// Returns the names of an entry that marks for a URL, a prefix or a host are compared with.
    static func names(_ key: [UInt8], _ tags: [[UInt8]]) -> [ArraySlice<UInt8>] {
        [URLName.name(ofKey: key)] + tags.compactMap(URLName.name(inTag:))
    }

    /// True if a component of a URL ends between two bytes.
    ///
    /// - Parameters:
    ///   - next: the byte after the position; `nil` at the end of the URL.
    ///   - last: the byte before the position; `nil` at the beginning of the URL.
    ///   - atPort: true to accept the end of a host before its port.
    /// - Returns: true at the end of the URL, before `/` or `?`, after `/`, and before `:` if
    ///   `atPort`.
    static func isBoundary(before next: UInt8?, after last: UInt8?, atPort: Bool) -> Bool {
        switch next {
        case nil, UInt8(ascii: "/"), UInt8(ascii: "?"): true
        case UInt8(ascii: ":") where atPort: true
        default: last == UInt8(ascii: "/")
        }
    }
}

extension ArraySlice<UInt8> {
    /// True if this name starts with `start` and a URL component ends there.
    fileprivate func begins(with start: [UInt8], atPort: Bool) -> Bool {
        guard starts(with: start) else { return false }
        let next = count > start.count ? self[startIndex + start.count] : nil
        return InvalidationMark.isBoundary(before: next, after: start.last, atPort: atPort)
    }
}
