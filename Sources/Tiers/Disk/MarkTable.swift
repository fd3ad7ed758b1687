package import Ground

/// What was invalidated and when, found by what it covers: an entry is held against any number of
/// marks with a look-up for each part of its URL where a prefix may end, and one for each tag.
///
/// Marks are known by their hashes; see ``StoredMark``.
///
/// **Laws.** ``effect(on:key:tags:stamp:)`` is the worst of what `DiskMark.effect` says for each
/// mark that was applied, unless hashes collide: then it may be worse. After ``fold(upTo:)`` it is
/// no better than `stale` where it was not nil before.
package struct MarkTable: Sendable {
    /// The latest marks that cover one thing.
    private struct Latest {
        var hard = Stamp.zero
        var soft = Stamp.zero

        var newest: Stamp { max(hard, soft) }

        mutating func note(_ mark: StoredMark) {
            if mark.isSoft { soft = max(soft, mark.stamp) } else { hard = max(hard, mark.stamp) }
        }

        /// Gives the later one of those that are forgotten.
        mutating func forget(upTo stamp: Stamp) -> Stamp? {
            let gone = max(hard <= stamp ? hard : .zero, soft <= stamp ? soft : .zero)
            if hard <= stamp { hard = .zero }
            if soft <= stamp { soft = .zero }
            return gone > .zero ? gone : nil
        }

        mutating func join(_ other: Latest) {
            hard = max(hard, other.hard)
            soft = max(soft, other.soft)
        }

        func holds(_ other: Latest) -> Bool { hard >= other.hard && soft >= other.soft }

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
    /// By which marks and names are hashed.
    package let key: MarkKey
    /// The hash of no bytes.
    private let start: KeyedHashStream

    private typealias Kind = StoredMark.Kind

    /// A table without marks.
    package init(key: MarkKey = .known) {
        self.key = key
        start = KeyedHashStream(key.hash)
    }

    /// The table of `marks`.
    package init(_ marks: [DiskMark], key: MarkKey = .known) {
        self.init(key: key)
        for mark in marks { apply(mark) }
    }

    /// The table of `marks`, which are hashed by `key`.
    package init(_ marks: [StoredMark], key: MarkKey) {
        self.init(key: key)
        others.reserveCapacity(marks.count)
        for mark in marks { apply(mark) }
    }

    /// Things that are covered, *everything* apart.
    package var count: Int { others.count }

    /// Whatever is stamped before is stale.
    package var softForAll: Stamp { everything.soft }

    package mutating func apply(_ mark: DiskMark) { apply(StoredMark(mark, key: key)) }

    /// Applies a mark that is hashed by ``key``.
    package mutating func apply(_ mark: StoredMark) {
        let index = Int(mark.kind.rawValue) - 1
        newest[index] = max(newest[index], mark.stamp)
        let length = mark.length == .max ? Int.max : Int(mark.length)
        switch mark.kind {
        case .everything: return everything.note(mark)
        case .prefix: prefixBytesMax = max(prefixBytesMax, length)
        case .host: hostBytesMax = max(hostBytesMax, length)
        case .entry, .url, .tag: break
        }
        others[mark.hash, default: Latest()].note(mark)
    }

    /// Takes over the marks of another table; by another key only those for everything.
    package mutating func join(_ other: MarkTable) {
        everything.join(other.everything)
        guard other.key == key else { return }
        for (hash, latest) in other.others { others[hash, default: Latest()].join(latest) }
        newest = zip(newest, other.newest).map { max($0, $1) }
        prefixBytesMax = max(prefixBytesMax, other.prefixBytesMax)
        hostBytesMax = max(hostBytesMax, other.hostBytesMax)
    }

    /// True if joining the other table would change nothing.
    ///
    /// A table under another key is held only if it has no marks but those for everything.
    package func holds(_ other: MarkTable) -> Bool {
        guard everything.holds(other.everything) else { return false }
        guard other.key == key else { return other.others.isEmpty }
        return other.others.allSatisfy { hash, latest in others[hash]?.holds(latest) ?? false }
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
        apply(.unknown(before: last))
    }

    /// The stamp up to which about half of the things that are covered were last invalidated; nil
    /// if nothing is covered.
    ///
    /// Hashes have no order, so that any thousands of them are a fair sample.
    package var medianStamp: Stamp? {
        let sample = others.values.prefix(4096).map(\.newest).sorted()
        return sample.isEmpty ? nil : sample[(sample.count - 1) / 2]
    }

    /// True if a record is dead by what is known of it without its key and tags.
    package func isDead(_ digest: EntryDigest, stamp: Stamp) -> Bool {
        if everything.hard > stamp { return true }
        guard isNewer(.entry, than: stamp) else { return false }
        var latest = Latest()
        look(.entry, hash(digest.bytes[...]), &latest)
        return latest.hard > stamp
    }

    // MARK: Looking up

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
        if isNewer(.entry, than: stamp), let name {
            look(.entry, hash(name.digest.bytes[...]), &latest)
        }
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
        newest[Int(kind.rawValue) - 1] > stamp
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
                length <= prefixBytesMax && DiskMark.ends(before: next, after: last, atPort: false)
            let isHost =
                length <= hostBytesMax && DiskMark.ends(before: next, after: last, atPort: true)
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
