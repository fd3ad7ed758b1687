package import Ground

/// A table of marks by their targets.
///
/// It finds the marks that cover an entry with one look-up for each position in its URL where a
/// prefix may end, and one for each tag.
///
/// Marks are stored as hashes under a ``MarkHashKey``. Two targets with the same hash share their
/// marks, so that an entry may be fetched again unnecessarily but is never served in error.
///
/// **Invariants.** ``effect(on:tags:version:)`` is the strongest of the effects of all applied
/// marks (``InvalidationMark/effect(on:tags:version:)``), or stronger if hashes collide. After
/// ``fold(upTo:)`` it is at least `stale` where it was not `nil` before. A table decoded from all
/// ``encodedChunks(where:)`` of another, with the marks that were not wanted applied, gives the
/// same effects.
package struct MarkTable: Sendable {
    /// The versions of the latest hard and soft marks for one target.
    struct LatestVersions {
        var hard = InvalidationVersion.zero
        var soft = InvalidationVersion.zero

        var newest: InvalidationVersion { max(hard, soft) }

        mutating func record(_ version: InvalidationVersion, isSoft: Bool) {
            if isSoft { soft = max(soft, version) } else { hard = max(hard, version) }
        }

        /// Removes the marks up to `version` and returns the later of those removed.
        mutating func forget(upTo version: InvalidationVersion) -> InvalidationVersion? {
            let gone = max(hard <= version ? hard : .zero, soft <= version ? soft : .zero)
            if hard <= version { hard = .zero }
            if soft <= version { soft = .zero }
            return gone > .zero ? gone : nil
        }

        /// Returns the versions converted by `stamped`; a version of zero, no mark, stays.
        func mappingVersions(_ stamped: (InvalidationVersion) -> InvalidationVersion)
            -> LatestVersions
        {
            LatestVersions(
                hard: hard > .zero ? stamped(hard) : hard, soft: soft > .zero ? stamped(soft) : soft
            )
        }

        mutating func merge(_ other: LatestVersions) {
            hard = max(hard, other.hard)
            soft = max(soft, other.soft)
        }

        /// True if neither version of `other` is later than that of these.
        func covers(_ other: LatestVersions) -> Bool { hard >= other.hard && soft >= other.soft }

        func effect(on version: InvalidationVersion) -> InvalidationMark.Effect? {
            if hard > version { return .purged }
            return soft > version ? .stale : nil
        }
    }

    /// The marks for everything.
    var everything = LatestVersions()
    /// The marks for all other targets, by the hashes of their kinds and texts.
    var others: [UInt64: LatestVersions] = [:]
    /// The latest version of each kind of mark; entries of this version or a later one need no
    /// look-up.
    var newestVersions = Array(repeating: InvalidationVersion.zero, count: Kind.allCases.count)
    /// The length in bytes of the longest prefix, where the search for prefixes of a URL ends.
    var prefixBytesMax = 0
    /// The length in bytes of the longest host, where the search for hosts in a URL ends.
    var hostBytesMax = 0
    /// The key under which marks and names are hashed.
    package let key: MarkHashKey
    /// The hash state for an empty input.
    private let start: KeyedHashStream

    /// The kinds of hashed targets, none of which share a hash; the number is the index in
    /// ``newestVersions``.
    private enum Kind: UInt8, CaseIterable {
        case url, prefix, host, tag

        /// Returns the hash of a target of this kind from that of its text.
        @inline(__always)
        func hash(_ text: UInt64) -> UInt64 {
            text &+ UInt64(rawValue + 1) &* 0x9E37_79B9_7F4A_7C15
        }
    }

    /// Creates a table without marks.
    package init(key: MarkHashKey = .publiclyKnown) {
        self.key = key
        start = KeyedHashStream(key.hash)
    }

    /// Creates a table with `marks` applied.
    package init(_ marks: [InvalidationMark], key: MarkHashKey = .publiclyKnown) {
        self.init(key: key)
        for mark in marks { apply(mark) }
    }

    /// The number of targets, without `everything`.
    package var count: Int { others.count }

    /// The version of the latest soft mark for everything; entries of earlier requests are stale.
    package var softVersionForEverything: InvalidationVersion { everything.soft }

    /// The handle of the marks for one target.
    package struct Slot: Hashable, Sendable {
        fileprivate let hash: UInt64
    }

    /// Applies a mark and returns its slot, `nil` for one that covers everything.
    @discardableResult
    package mutating func apply(_ mark: InvalidationMark) -> Slot? {
        switch mark.target {
        case .everything:
            everything.record(mark.version, isSoft: mark.isSoft)
            return nil
        case .url(let name): return apply(mark, .url, hash(name[...]))
        case .tag(let tag): return apply(mark, .tag, hash(tag[...]))
        case .prefix(let host, let path) where path.isEmpty:
            hostBytesMax = max(hostBytesMax, host.count)
            return apply(mark, .host, hash(host[...]))
        case .prefix(let host, let path):
            let prefix = host + path
            prefixBytesMax = max(prefixBytesMax, prefix.count)
            return apply(mark, .prefix, hash(prefix[...]))
        }
    }

    private mutating func apply(_ mark: InvalidationMark, _ kind: Kind, _ hash: UInt64) -> Slot {
        let index = Int(kind.rawValue)
        newestVersions[index] = max(newestVersions[index], mark.version)
        let slot = Slot(hash: kind.hash(hash))
        others[slot.hash, default: LatestVersions()].record(mark.version, isSoft: mark.isSoft)
        return slot
    }

    /// Adds the marks of another table, with versions converted by `mappingVersions`.
    ///
    /// If the other table has a different key, only its marks for everything are added.
    package mutating func merge(
        _ other: MarkTable, mappingVersions: (InvalidationVersion) -> InvalidationVersion = { $0 }
    ) {
        everything.merge(other.everything.mappingVersions(mappingVersions))
        guard other.key == key else { return }
        for (hash, latest) in other.others {
            others[hash, default: LatestVersions()].merge(latest.mappingVersions(mappingVersions))
        }
        newestVersions = zip(newestVersions, other.newestVersions).map {
            $1 > .zero ? max($0, mappingVersions($1)) : $0
        }
        prefixBytesMax = max(prefixBytesMax, other.prefixBytesMax)
        hostBytesMax = max(hostBytesMax, other.hostBytesMax)
    }

    // MARK: Removal

    /// Replaces all marks up to `version`, except those for everything, by one soft mark for
    /// everything, which has the version of the latest of them.
    ///
    /// Effects on entries with the version of that mark or a later one do not change.
    package mutating func fold(upTo version: InvalidationVersion) {
        var last: InvalidationVersion?
        var kept: [UInt64: LatestVersions] = [:]
        for (hash, latest) in others {
            var latest = latest
            if let gone = latest.forget(upTo: version) { last = max(last ?? gone, gone) }
            if latest.newest > .zero { kept[hash] = latest }
        }
        guard let last else { return }
        others = kept
        everything.record(last, isSoft: true)
    }

    /// Removes the marks of `slot`, which must cover no entries, unless one is later than
    /// `version`.
    package mutating func forget(_ slot: Slot, upTo version: InvalidationVersion) {
        guard let latest = others[slot.hash], latest.newest <= version else { return }
        others[slot.hash] = nil
    }

    /// The median of the versions at which the targets were last invalidated; `nil` if there are
    /// no targets but `everything`.
    ///
    /// Computed from up to 4,096 targets; as hashes are unordered, any of them are a fair sample.
    package var medianVersion: InvalidationVersion? {
        let sample = others.values.prefix(4096).map(\.newest).sorted()
        return sample.isEmpty ? nil : sample[(sample.count - 1) / 2]
    }

    // MARK: Look-up

    /// Returns the effect of the marks on an entry whose request began at `version`.
    ///
    /// - Parameters:
    ///   - key: a URL, or the key of a variant: the URL, a line feed, and the selecting values.
    ///   - tags: the tags of the entry.
    ///   - version: the invalidation version at the start of the entry's request.
    /// - Returns: `nil` if no later mark covers the entry.
    package func effect(on key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationMark.Effect?
    {
        latest(key, tags, version).effect(on: version)
    }

    /// Returns the version of the latest soft mark that covers an entry; `nil` if none is later
    /// than `version`.
    package func soft(on key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationVersion?
    {
        let soft = latest(key, tags, version).soft
        return soft > version ? soft : nil
    }

    /// Returns the versions of the marks that cover an entry; those of marks not later than
    /// `version` may be missing.
    private func latest(_ key: [UInt8], _ tags: [[UInt8]], _ version: InvalidationVersion)
        -> LatestVersions
    {
        var latest = everything
        matchURL(URLName.name(ofKey: key), &latest, version)
        let looksForTags = isNewer(.tag, than: version)
        for tag in tags {
            if let name = URLName.name(inTag: tag) {
                matchURL(name, &latest, version)
            } else if looksForTags {
                match(.tag, hash(tag[...]), &latest)
            }
        }
        return latest
    }

    /// Adds to `latest` the marks for a URL, and for each prefix and host that it begins with,
    /// except for kinds without a mark later than `version`.
    private func matchURL(
        _ name: ArraySlice<UInt8>, _ latest: inout LatestVersions, _ version: InvalidationVersion
    ) {
        if isNewer(.url, than: version) { match(.url, hash(name), &latest) }
        if isNewer(.prefix, than: version) || isNewer(.host, than: version) {
            matchPrefixes(of: name, &latest)
        }
    }

    /// True if a mark of this kind is later than `version`.
    private func isNewer(_ kind: Kind, than version: InvalidationVersion) -> Bool {
        newestVersions[Int(kind.rawValue)] > version
    }

    private func hash(_ text: ArraySlice<UInt8>) -> UInt64 {
        var hash = start
        hash.add(text)
        return hash.value
    }

    /// Adds to `latest` the marks for the target with this kind and hash of its text.
    private func match(_ kind: Kind, _ hash: UInt64, _ latest: inout LatestVersions) {
        if let found = others[kind.hash(hash)] { latest.merge(found) }
    }

    /// Adds to `latest` the marks for each beginning of `url` that ends at a component boundary.
    private func matchPrefixes(of url: ArraySlice<UInt8>, _ latest: inout LatestVersions) {
        var hash = start
        var hashedTo = url.startIndex
        var last: UInt8?
        let most = min(url.count, max(prefixBytesMax, hostBytesMax))
        for length in 0...most {
            let end = url.startIndex + length
            let next = length < url.count ? url[end] : nil
            let isPrefix =
                length <= prefixBytesMax
                && InvalidationMark.isBoundary(before: next, after: last, atPort: false)
            let isHost =
                length <= hostBytesMax
                && InvalidationMark.isBoundary(before: next, after: last, atPort: true)
            if isPrefix || isHost {
                hash.add(url[hashedTo..<end])
                hashedTo = end
                let value = hash.value
                if isPrefix { match(.prefix, value, &latest) }
                if isHost { match(.host, value, &latest) }
            }
            last = next
        }
    }
}

// MARK: - Stored form; see "Marks" in <doc:DiskFormat>
extension MarkTable {
    /// Encodes marks in chunks that can be decoded in any order; at least one.
    ///
    /// - Parameter isWanted: selects targets by the versions of their marks; both marks of a target
    ///   are encoded if it returns true for one. Marks for everything are always encoded.
    /// - Returns: the chunks, of about 48 KiB at most.
    package func encodedChunks(where isWanted: (InvalidationVersion) -> Bool = { _ in true })
        -> [[UInt8]]
    {
        var pieces = [head]
        for (hash, latest) in others where isWanted(latest.hard) || isWanted(latest.soft) {
            if pieces[pieces.count - 1].count >= Self.chunkBytesMax { pieces.append(head) }
            let place = pieces.count - 1
            pieces[place].appendLittle(hash)
            pieces[place].append(latest.hard)
            pieces[place].append(latest.soft)
        }
        return pieces
    }

    /// The approximate maximum size of a chunk in bytes.
    private static let chunkBytesMax = 48 << 10
    /// The size of the encoded marks for one target in bytes.
    package static let markBytes = 40
    private static let headBytes = 16 + 2 * 16 + 4 * 16 + 2 * 8

    /// The beginning of every chunk: the key, the marks for everything, and the limits of look-ups.
    private var head: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittle(key.first)
        bytes.appendLittle(key.second)
        for version in [everything.hard, everything.soft] + newestVersions { bytes.append(version) }
        bytes.appendLittle(UInt64(prefixBytesMax))
        bytes.appendLittle(UInt64(hostBytesMax))
        return bytes
    }

    /// Decodes all chunks of a table; `nil` if they are not chunks of one table.
    ///
    /// The table has the key in the chunks; without chunks, it is empty and has `key`.
    package init?(encodedChunks: [[UInt8]], key: MarkHashKey) {
        let found = encodedChunks.first.flatMap { piece in
            piece.count < 16
                ? nil
                : MarkHashKey(first: piece.span.little64(at: 0), second: piece.span.little64(at: 8))
        }
        self.init(key: found ?? key)
        for piece in encodedChunks where !merge(piece.span) { return nil }
    }

    /// Adds the marks of a chunk; returns false if it is malformed or has another key.
    private mutating func merge(_ piece: Span<UInt8>) -> Bool {
        let marksBytes = piece.count - Self.headBytes
        guard marksBytes >= 0, marksBytes.isMultiple(of: Self.markBytes),
            piece.little64(at: 0) == key.first, piece.little64(at: 8) == key.second
        else { return false }
        everything.hard = max(everything.hard, piece.invalidationVersion(at: 16))
        everything.soft = max(everything.soft, piece.invalidationVersion(at: 32))
        for kind in newestVersions.indices {
            newestVersions[kind] = max(
                newestVersions[kind], piece.invalidationVersion(at: 48 + 16 * kind))
        }
        let lengths = 48 + 16 * newestVersions.count
        prefixBytesMax = max(prefixBytesMax, Int(clamping: piece.little64(at: lengths)))
        hostBytesMax = max(hostBytesMax, Int(clamping: piece.little64(at: lengths + 8)))
        for start in stride(from: Self.headBytes, to: piece.count, by: Self.markBytes) {
            let latest = LatestVersions(
                hard: piece.invalidationVersion(at: start + 8),
                soft: piece.invalidationVersion(at: start + 24))
            others[piece.little64(at: start), default: LatestVersions()].merge(latest)
        }
        return true
    }
}

/// The secret key under which a node's marks are hashed.
///
/// Without it, an attacker cannot choose URLs or tags that another's marks cover.
///
/// Drawn once and stored with the marks, because the marks' targets are known only by their hashes.
package struct MarkHashKey: Hashable, Sendable {
    /// The first 64 bits.
    package let first: UInt64
    /// The second 64 bits.
    package let second: UInt64

    /// Creates a key from its halves.
    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// A fixed key for simulations and measurements, where names are not hostile.
    package static let publiclyKnown = MarkHashKey(first: 0, second: 0)

    var hash: KeyedHash { KeyedHash(key0: first, key1: second) }
}
