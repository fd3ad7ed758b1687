package import Ground

/// What was invalidated and when, found by what it covers: an entry is held against any number of
/// marks with a look-up for each part of its URL where a prefix may end, and one for each tag.
///
/// Marks are known by their hashes under a ``MarkKey``: two that share one cover what either
/// covers, so that an entry is asked for again in vain, and never served in error.
///
/// **Laws.** ``effect(on:tags:stamp:)`` is the worst of what `Mark.effect` says for each mark that
/// was applied, unless hashes collide: then it may be worse. After ``fold(upTo:)`` it is no better
/// than `stale` where it was not nil before. A table that took all ``pieces(where:)`` of
/// another, and the marks that were not wanted, says what that one says.
package struct MarkTable: Sendable {
    /// The latest marks that cover one thing.
    struct Latest {
        var hard = Stamp.zero
        var soft = Stamp.zero

        var newest: Stamp { max(hard, soft) }

        mutating func note(_ stamp: Stamp, isSoft: Bool) {
            if isSoft { soft = max(soft, stamp) } else { hard = max(hard, stamp) }
        }

        /// Gives the later one of those that are forgotten.
        mutating func forget(upTo stamp: Stamp) -> Stamp? {
            let gone = max(hard <= stamp ? hard : .zero, soft <= stamp ? soft : .zero)
            if hard <= stamp { hard = .zero }
            if soft <= stamp { soft = .zero }
            return gone > .zero ? gone : nil
        }

        func stamped(_ stamped: (Stamp) -> Stamp) -> Latest {
            Latest(
                hard: hard > .zero ? stamped(hard) : hard, soft: soft > .zero ? stamped(soft) : soft
            )
        }

        mutating func join(_ other: Latest) {
            hard = max(hard, other.hard)
            soft = max(soft, other.soft)
        }

        func holds(_ other: Latest) -> Bool { hard >= other.hard && soft >= other.soft }

        func effect(on stamp: Stamp) -> Mark.Effect? {
            if hard > stamp { return .dead }
            return soft > stamp ? .stale : nil
        }
    }

    var everything = Latest()
    var others: [UInt64: Latest] = [:]
    /// Of the marks of each kind; what was asked for after them is not looked up.
    var newest = Array(repeating: Stamp.zero, count: Kind.allCases.count)
    /// Bytes of the longest prefix, and of the longest host: further no URL is looked at.
    var prefixBytesMax = 0
    var hostBytesMax = 0
    /// By which marks and names are hashed.
    package let key: MarkKey
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
    package init(key: MarkKey = .known) {
        self.key = key
        start = KeyedHashStream(key.hash)
    }

    /// The table of `marks`.
    package init(_ marks: [Mark], key: MarkKey = .known) {
        self.init(key: key)
        for mark in marks { apply(mark) }
    }

    /// Things that are covered, *everything* apart.
    package var count: Int { others.count }

    /// Whatever is stamped before is stale.
    package var softForAll: Stamp { everything.soft }

    /// Where the marks are that cover one thing.
    package struct Slot: Hashable, Sendable {
        fileprivate let hash: UInt64
    }

    /// Applies a mark; gives where it is, nil for one that covers everything.
    @discardableResult
    package mutating func apply(_ mark: Mark) -> Slot? {
        switch mark.target {
        case .everything:
            everything.note(mark.stamp, isSoft: mark.isSoft)
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

    private mutating func apply(_ mark: Mark, _ kind: Kind, _ hash: UInt64) -> Slot {
        let index = Int(kind.rawValue)
        newest[index] = max(newest[index], mark.stamp)
        let slot = Slot(hash: kind.hash(hash))
        others[slot.hash, default: Latest()].note(mark.stamp, isSoft: mark.isSoft)
        return slot
    }

    /// Takes over the marks of another table, each with the stamp that `stamped` makes of its own;
    /// by another key only those for everything.
    package mutating func join(_ other: MarkTable, stamped: (Stamp) -> Stamp = { $0 }) {
        everything.join(other.everything.stamped(stamped))
        guard other.key == key else { return }
        for (hash, latest) in other.others {
            others[hash, default: Latest()].join(latest.stamped(stamped))
        }
        newest = zip(newest, other.newest).map { $1 > .zero ? max($0, stamped($1)) : $0 }
        prefixBytesMax = max(prefixBytesMax, other.prefixBytesMax)
        hostBytesMax = max(hostBytesMax, other.hostBytesMax)
    }

    // MARK: Forgetting

    /// Puts one mark, soft and for everything, in the place of all up to `stamp`.
    ///
    /// Of what is stamped no earlier than that mark it says what it said before.
    package mutating func fold(upTo stamp: Stamp) {
        var last: Stamp?
        var kept: [UInt64: Latest] = [:]
        for (hash, latest) in others {
            var latest = latest
            if let gone = latest.forget(upTo: stamp) { last = max(last ?? gone, gone) }
            if latest.newest > .zero { kept[hash] = latest }
        }
        guard let last else { return }
        others = kept
        everything.note(last, isSoft: true)
    }

    /// Forgets marks of which nothing is left to be covered; later ones in the same place stay.
    package mutating func forget(_ slot: Slot, upTo stamp: Stamp) {
        guard let latest = others[slot.hash], latest.newest <= stamp else { return }
        others[slot.hash] = nil
    }

    /// The stamp up to which about half of the things that are covered were last invalidated; nil
    /// if nothing is covered.
    ///
    /// Hashes have no order, so that any thousands of them are a fair sample.
    package var medianStamp: Stamp? {
        let sample = others.values.prefix(4096).map(\.newest).sorted()
        return sample.isEmpty ? nil : sample[(sample.count - 1) / 2]
    }

    // MARK: Looking up

    /// What becomes of an entry with this key and these tags, whose request began at `stamp`; nil
    /// if nothing covers it that came after.
    ///
    /// `key` is a URL, or that of one of its variants: the URL, a line feed, and what selects it.
    package func effect(on key: [UInt8], tags: [[UInt8]], stamp: Stamp) -> Mark.Effect? {
        latest(key, tags, stamp).effect(on: stamp)
    }

    /// The latest soft mark that covers such an entry and came after it; nil if there is none.
    package func soft(on key: [UInt8], tags: [[UInt8]], stamp: Stamp) -> Stamp? {
        let soft = latest(key, tags, stamp).soft
        return soft > stamp ? soft : nil
    }

    private func latest(_ key: [UInt8], _ tags: [[UInt8]], _ stamp: Stamp) -> Latest {
        var latest = everything
        lookForURL(URLName.name(ofKey: key), &latest, stamp)
        let looksForTags = isNewer(.tag, than: stamp)
        for tag in tags {
            if let name = URLName.name(inTag: tag) {
                lookForURL(name, &latest, stamp)
            } else if looksForTags {
                look(.tag, hash(tag[...]), &latest)
            }
        }
        return latest
    }

    /// Looks for marks of a URL, and of each prefix and host that it begins with.
    private func lookForURL(
        _ name: ArraySlice<UInt8>, _ latest: inout Latest, _ stamp: Stamp
    ) {
        if isNewer(.url, than: stamp) { look(.url, hash(name), &latest) }
        if isNewer(.prefix, than: stamp) || isNewer(.host, than: stamp) {
            lookForStarts(of: name, &latest)
        }
    }

    private func isNewer(_ kind: Kind, than stamp: Stamp) -> Bool {
        newest[Int(kind.rawValue)] > stamp
    }

    private func hash(_ text: ArraySlice<UInt8>) -> UInt64 {
        var hash = start
        hash.add(text)
        return hash.value
    }

    private func look(_ kind: Kind, _ hash: UInt64, _ latest: inout Latest) {
        if let found = others[kind.hash(hash)] { latest.join(found) }
    }

    /// Looks for marks of each beginning of `url` that ends where a part of it does.
    private func lookForStarts(of url: ArraySlice<UInt8>, _ latest: inout Latest) {
        var hash = start
        var hashedTo = url.startIndex
        var last: UInt8?
        let most = min(url.count, max(prefixBytesMax, hostBytesMax))
        for length in 0...most {
            let end = url.startIndex + length
            let next = length < url.count ? url[end] : nil
            let isPrefix =
                length <= prefixBytesMax && Mark.ends(before: next, after: last, atPort: false)
            let isHost =
                length <= hostBytesMax && Mark.ends(before: next, after: last, atPort: true)
            if isPrefix || isHost {
                hash.add(url[hashedTo..<end])
                hashedTo = end
                let value = hash.value
                if isPrefix { look(.prefix, value, &latest) }
                if isHost { look(.host, value, &latest) }
            }
            last = next
        }
    }
}
