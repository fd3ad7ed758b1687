package import Ground

/// What was invalidated and when, found by what it covers: an entry is held against any number of
/// marks with a look-up for each part of its URL where a prefix may end, and one for each tag.
///
/// Marks are known by 64-bit hashes. Two of one hash cover what either covers: an entry is then
/// asked for again in vain, and never served in error.
///
/// **Law.** ``effect(on:key:tags:stamp:)`` is the worst of what `DiskMark.effect` says for each
/// mark that was applied.
package struct MarkTable: Sendable {
    /// The latest marks that cover one thing.
    private struct Latest {
        var hard = Stamp.zero
        var soft = Stamp.zero

        mutating func note(_ mark: DiskMark) {
            if mark.isSoft { soft = max(soft, mark.stamp) } else { hard = max(hard, mark.stamp) }
        }

        mutating func join(_ other: Latest) {
            hard = max(hard, other.hard)
            soft = max(soft, other.soft)
        }

        func effect(on stamp: Stamp) -> DiskMark.Effect? {
            if hard > stamp { return .dead }
            return soft > stamp ? .stale : nil
        }
    }

    private var everything = Latest()
    private var others: [UInt64: Latest] = [:]
    /// Of the marks of each kind; what was asked for after them is not looked up.
    private var newest = Array(repeating: Stamp.zero, count: Kind.allCases.count)
    /// Bytes of the longest prefix, and of the longest host: further no URL is looked at.
    private var prefixBytesMax = 0
    private var hostBytesMax = 0

    /// How the hash of a mark begins, so that no two kinds have one.
    private enum Kind: UInt8, CaseIterable {
        case entry = 1
        case url, prefix, host, tag
    }

    package init() {}

    /// The table of `marks`.
    package init(_ marks: [DiskMark]) {
        for mark in marks { apply(mark) }
    }

    /// Things that are covered, *everything* apart.
    package var count: Int { others.count }

    package mutating func apply(_ mark: DiskMark) {
        switch mark.target {
        case .everything: everything.note(mark)
        case .entry(let name): note(mark, .entry, name.hash)
        case .url(let url): note(mark, .url, url[...].markHash)
        case .tag(let tag): note(mark, .tag, tag[...].markHash)
        case .prefix(let prefix):
            prefixBytesMax = max(prefixBytesMax, prefix.count)
            note(mark, .prefix, prefix[...].markHash)
        case .host(let host):
            hostBytesMax = max(hostBytesMax, host.count)
            note(mark, .host, host[...].markHash)
        }
    }

    private mutating func note(_ mark: DiskMark, _ kind: Kind, _ hash: MarkHash) {
        let index = Int(kind.rawValue) - 1
        newest[index] = max(newest[index], mark.stamp)
        others[hash.value(of: kind.rawValue), default: Latest()].note(mark)
    }

    /// What becomes of a record with this name, key and tags, whose request began at `stamp`; nil
    /// if nothing covers it that came after.
    ///
    /// `key` is a URL, or that of one of its variants: the URL, a line feed, and what selects it.
    package func effect(
        on name: EntryName?, key: [UInt8], tags: [[UInt8]], stamp: Stamp
    ) -> DiskMark.Effect? {
        latest(name, key, tags, stamp).effect(on: stamp)
    }

    /// The latest soft mark that covers such a record and came after it; nil if there is none.
    package func soft(
        on name: EntryName?, key: [UInt8], tags: [[UInt8]], stamp: Stamp
    ) -> Stamp? {
        let soft = latest(name, key, tags, stamp).soft
        return soft > stamp ? soft : nil
    }

    private func latest(
        _ name: EntryName?, _ key: [UInt8], _ tags: [[UInt8]], _ stamp: Stamp
    ) -> Latest {
        var latest = everything
        if isNewer(.entry, than: stamp), let name { look(.entry, name.hash, &latest) }
        lookForURL(URLName.name(ofKey: key), &latest, stamp)
        let looksForTags = isNewer(.tag, than: stamp)
        for tag in tags {
            if let name = URLName.name(inTag: tag) {
                lookForURL(name, &latest, stamp)
            } else if looksForTags {
                look(.tag, tag[...].markHash, &latest)
            }
        }
        return latest
    }

    /// Looks for marks of a URL, and of each prefix and host that it begins with.
    private func lookForURL(
        _ name: ArraySlice<UInt8>, _ latest: inout Latest, _ stamp: Stamp
    ) {
        if isNewer(.url, than: stamp) { look(.url, name.markHash, &latest) }
        if isNewer(.prefix, than: stamp) || isNewer(.host, than: stamp) {
            lookForStarts(of: name, &latest)
        }
    }

    private func isNewer(_ kind: Kind, than stamp: Stamp) -> Bool {
        newest[Int(kind.rawValue) - 1] > stamp
    }

    private func look(_ kind: Kind, _ hash: MarkHash, _ latest: inout Latest) {
        if let found = others[hash.value(of: kind.rawValue)] { latest.join(found) }
    }

    /// Looks for marks of each beginning of `url` that ends where a part of it does.
    private func lookForStarts(of url: ArraySlice<UInt8>, _ latest: inout Latest) {
        var hash = MarkHash()
        var last: UInt8?
        let most = min(url.count, max(prefixBytesMax, hostBytesMax))
        for length in 0...most {
            let next = length < url.count ? url[url.startIndex + length] : nil
            if length <= prefixBytesMax, DiskMark.ends(before: next, after: last, atPort: false) {
                look(.prefix, hash, &latest)
            }
            if length <= hostBytesMax, DiskMark.ends(before: next, after: last, atPort: true) {
                look(.host, hash, &latest)
            }
            guard let next else { return }
            hash.add(next)
            last = next
        }
    }
}

/// The 64-bit hash of a mark's text, byte by byte (FNV-1a), so that one pass over a URL gives those
/// of all its beginnings.
private struct MarkHash {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ byte: UInt8) {
        state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }

    /// The hash of what was added, as that of a mark of this `kind`.
    func value(of kind: UInt8) -> UInt64 {
        var hash = self
        hash.add(kind)
        return hash.state
    }
}

extension Sequence<UInt8> {
    fileprivate var markHash: MarkHash {
        var hash = MarkHash()
        for byte in self { hash.add(byte) }
        return hash
    }
}

extension EntryName {
    fileprivate var hash: MarkHash {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes[...].markHash
    }
}
