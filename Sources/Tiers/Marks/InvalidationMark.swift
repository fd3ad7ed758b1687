package import Ground

/// What must not come back, or not unasked: entries that a target covers and that were asked for
/// before (DESIGN.md §7, "Stamps and marks").
package struct InvalidationMark: Hashable, Sendable {
    package var target: PurgeTarget
    /// True: entries stamped before are stale; false: they are dead.
    package var isSoft: Bool
    package var version: InvalidationVersion

    package init(_ target: PurgeTarget, isSoft: Bool, version: InvalidationVersion) {
        self.target = target
        self.isSoft = isSoft
        self.version = version
    }
}

extension InvalidationMark {
    /// What a mark makes of a record.
    package enum Effect: Hashable, Sendable {
        /// Never served again.
        case purged
        /// Served only after the origin was asked.
        case stale
    }

    /// What becomes of an entry with this key and these tags, whose request began at `stamp`; nil
    /// if it is not covered, or was asked for after the mark.
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

    /// Under which names a URL, a prefix or a host covers the entry.
    static func names(_ key: [UInt8], _ tags: [[UInt8]]) -> [ArraySlice<UInt8>] {
        [URLName.name(ofKey: key)] + tags.compactMap(URLName.name(inTag:))
    }

    /// True if a part of a URL ends between the bytes `last` and `next`, of which the one is nil at
    /// its beginning and the other at its end; `atPort`: a host ends before its port, too.
    static func isBoundary(before next: UInt8?, after last: UInt8?, atPort: Bool) -> Bool {
        switch next {
        case nil, UInt8(ascii: "/"), UInt8(ascii: "?"): true
        case UInt8(ascii: ":") where atPort: true
        default: last == UInt8(ascii: "/")
        }
    }
}

extension ArraySlice<UInt8> {
    /// True if `start` begins it and ends where a part of a URL ends.
    fileprivate func begins(with start: [UInt8], atPort: Bool) -> Bool {
        guard starts(with: start) else { return false }
        let next = count > start.count ? self[startIndex + start.count] : nil
        return InvalidationMark.isBoundary(before: next, after: start.last, atPort: atPort)
    }
}
