package import Ground

/// What was invalidated and when, found by what it covers: an entry is held against any number of
/// marks with a look-up for each part of its URL where a prefix may end, and one for each tag.
///
/// Marks are known by their hashes under a ``MarkHashKey``: two that share one cover what either
/// covers, so that an entry is asked for again in vain, and never served in error.
///
/// **Laws.** ``effect(on:tags:stamp:)`` is the worst of what `InvalidationMark.effect` says for
/// each mark that was applied, unless hashes collide: then it may be worse. After ``fold(upTo:)``
/// it is no better than `stale` where it was not nil before. A table that took all
/// ``pieces(where:)`` of another, and the marks that were not wanted, says what that one says.
package struct MarkTable: Sendable {
    /// The latest marks that cover one thing.
    struct LatestVersions {
        var hard = InvalidationVersion.zero
        var soft = InvalidationVersion.zero

        var newest: InvalidationVersion { max(hard, soft) }

        mutating func record(_ version: InvalidationVersion, isSoft: Bool) {
            if isSoft { soft = max(soft, version) } else { hard = max(hard, version) }
        }

        /// Gives the later one of those that are forgotten.
        mutating func forget(upTo version: InvalidationVersion) -> InvalidationVersion? {
            let gone = max(hard <= version ? hard : .zero, soft <= version ? soft : .zero)
            if hard <= version { hard = .zero }
            if soft <= version { soft = .zero }
            return gone > .zero ? gone : nil
        }

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

        func covers(_ other: LatestVersions) -> Bool { hard >= other.hard && soft >= other.soft }

        func effect(on version: InvalidationVersion) -> InvalidationMark.Effect? {
            if hard > version { return .purged }
            return soft > version ? .stale : nil
        }
    }

    var everything = LatestVersions()
    var others: [UInt64: LatestVersions] = [:]
    /// Of the marks of each kind; what was asked for after them is not looked up.
    var newestVersions = Array(repeating: InvalidationVersion.zero, count: Kind.allCases.count)
    /// Bytes of the longest prefix, and of the longest host: further no URL is looked at.
    var prefixBytesMax = 0
    var hostBytesMax = 0
    /// By which marks and names are hashed.
    package let key: MarkHashKey
    /// The hash of no bytes.
    private let start: KeyedHashStream

    /// What a hash is of, so that no two kinds have one; the number is that in ``newest``.
    private enum Kind: UInt8, CaseIterable {
        case url, prefix, host, tag

        @inline(__always)
        func hash(_ text: UInt64) -> UInt64 {
            text &+ UInt64(rawValue + 1) &* 0x9E37_79B9_7F4A_7C15
        }
    }

    /// A table without marks.
    package init(key: MarkHashKey = .publiclyKnown) {
        self.key = key
        start = KeyedHashStream(key.hash)
    }

    /// The table of `marks`.
    package init(_ marks: [InvalidationMark], key: MarkHashKey = .publiclyKnown) {
        self.init(key: key)
        for mark in marks { apply(mark) }
    }

    /// Things that are covered, *everything* apart.
    package var count: Int { others.count }

    /// Whatever is stamped before is stale.
    package var softVersionForEverything: InvalidationVersion { everything.soft }

    /// Where the marks are that cover one thing.
    package struct Slot: Hashable, Sendable {
        fileprivate let hash: UInt64
    }

    /// Applies a mark; gives where it is, nil for one that covers everything.
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

    /// Takes over the marks of another table, each with the stamp that `stamped` makes of its own;
    /// by another key only those for everything.
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

    // MARK: Forgetting

    /// Puts one mark, soft and for everything, in the place of all up to `stamp`.
    ///
    /// Of what is stamped no earlier than that mark it says what it said before.
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

    /// Forgets marks of which nothing is left to be covered; later ones in the same place stay.
    package mutating func forget(_ slot: Slot, upTo version: InvalidationVersion) {
        guard let latest = others[slot.hash], latest.newest <= version else { return }
        others[slot.hash] = nil
    }

    /// The stamp up to which about half of the things that are covered were last invalidated; nil
    /// if nothing is covered.
    ///
    /// Hashes have no order, so that any thousands of them are a fair sample.
    package var medianVersion: InvalidationVersion? {
        let sample = others.values.prefix(4096).map(\.newest).sorted()
        return sample.isEmpty ? nil : sample[(sample.count - 1) / 2]
    }

    // MARK: Looking up

    /// What becomes of an entry with this key and these tags, whose request began at `stamp`; nil
    /// if nothing covers it that came after.
    ///
    /// `key` is a URL, or that of one of its variants: the URL, a line feed, and what selects it.
    package func effect(on key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationMark.Effect?
    {
        latest(key, tags, version).effect(on: version)
    }

    /// The latest soft mark that covers such an entry and came after it; nil if there is none.
    package func soft(on key: [UInt8], tags: [[UInt8]], version: InvalidationVersion)
        -> InvalidationVersion?
    {
        let soft = latest(key, tags, version).soft
        return soft > version ? soft : nil
    }

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

    /// Looks for marks of a URL, and of each prefix and host that it begins with.
    private func matchURL(
        _ name: ArraySlice<UInt8>, _ latest: inout LatestVersions, _ version: InvalidationVersion
    ) {
        if isNewer(.url, than: version) { match(.url, hash(name), &latest) }
        if isNewer(.prefix, than: version) || isNewer(.host, than: version) {
            matchPrefixes(of: name, &latest)
        }
    }

    private func isNewer(_ kind: Kind, than version: InvalidationVersion) -> Bool {
        newestVersions[Int(kind.rawValue)] > version
    }

    private func hash(_ text: ArraySlice<UInt8>) -> UInt64 {
        var hash = start
        hash.add(text)
        return hash.value
    }

    private func match(_ kind: Kind, _ hash: UInt64, _ latest: inout LatestVersions) {
        if let found = others[kind.hash(hash)] { latest.merge(found) }
    }

    /// Looks for marks of each beginning of `url` that ends where a part of it does.
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

/// A table as bytes, to be kept; see "Marks" in <doc:DiskFormat>.
extension MarkTable {
    /// The marks with stamps that are wanted, in pieces that can be taken one by one in any order;
    /// at least one.
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

    /// About the most bytes of a piece.
    private static let chunkBytesMax = 48 << 10
    /// Size of one mark in bytes.
    package static let markBytes = 40
    private static let headBytes = 16 + 2 * 16 + 4 * 16 + 2 * 8

    /// What every piece begins with: the key, what covers everything, and what look-ups go by.
    private var head: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittle(key.first)
        bytes.appendLittle(key.second)
        for version in [everything.hard, everything.soft] + newestVersions { bytes.append(version) }
        bytes.appendLittle(UInt64(prefixBytesMax))
        bytes.appendLittle(UInt64(hostBytesMax))
        return bytes
    }

    /// The table that `pieces` were made of; an empty one under `key` if there are none.
    ///
    /// Nil if they cannot have been made of one.
    package init?(encodedChunks: [[UInt8]], key: MarkHashKey) {
        let found = encodedChunks.first.flatMap { piece in
            piece.count < 16
                ? nil
                : MarkHashKey(first: piece.span.little64(at: 0), second: piece.span.little64(at: 8))
        }
        self.init(key: found ?? key)
        for piece in encodedChunks where !merge(piece.span) { return nil }
    }

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

/// The secret by which a node's marks are hashed: whoever does not know it cannot choose URLs or
/// tags that a mark of others covers.
///
/// Drawn once, and kept with the marks, for of what they cover nothing else is known.
package struct MarkHashKey: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// One that everybody knows, where nobody chooses names to do harm: in simulations and
    /// measurements.
    package static let publiclyKnown = MarkHashKey(first: 0, second: 0)

    var hash: KeyedHash { KeyedHash(key0: first, key1: second) }
}
