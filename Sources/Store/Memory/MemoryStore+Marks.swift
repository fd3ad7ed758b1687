import Ground
import Synchronization
import Tiers

/// Holding entries against what was invalidated.
extension MemoryStore {
    /// Nothing was invalidated that might cover the entry since it was held against the marks.
    @inline(__always)
    func isUpToDate(_ entry: MemoryEntry) -> Bool {
        entry.checkedGeneration.load(ordering: .relaxed)
            == marks.generation(isKeyOnly: entry.isKeyOnly)
    }

    /// An entry that is in memory as the marks leave it: itself, or a stale one in its place; nil
    /// if there is none now.
    func applyMarks(_ found: MemoryEntry) -> MemoryEntry? {
        guard let form = applyingMarks(to: found) else {
            removePurged(found)
            return nil
        }
        guard form !== found else { return found }
        guard insert(form, replacing: found) else {
            removePurged(found)
            return nil
        }
        return form
    }

    private func removePurged(_ found: MemoryEntry) {
        if remove(found) { evictions.add(.purged) }
    }

    /// Has those that look for `key`, or for a variant under it, see what was invalidated by now:
    /// to be called after a mark for its URL.
    package func applyMarksForKey(_ key: [UInt8]) {
        guard let found = peek(key)?.entry else { return }
        _ = applyMarks(found)
        guard found.metadata.flags.contains(.isVariantIndex) else { return }
        // An index is tagged with the keys of its variants.
        for place in found.tags {
            if let variant = peek(place)?.entry { _ = applyMarks(variant) }
        }
    }

    /// What an entry is by the marks; nil if it is dead, or there is no room for the stale one that
    /// it has become.
    package func applyingMarks(to entry: MemoryEntry) -> MemoryEntry? {
        let number = marks.generation(isKeyOnly: entry.isKeyOnly)
        let (tags, version) = (entry.tags, entry.version)
        switch marks.effect(on: entry.key, tags: tags, version: version) {
        case .purged: return nil
        case .stale:
            let since = marks.staleSince(entry.key, tags: tags, version: version)
            guard entry.metadata.freshUntil <= since else {
                return makeStaleCopy(entry, since: since, number)
            }
        case nil: break
        }
        entry.checkedGeneration.store(number, ordering: .relaxed)
        return entry
    }

    /// The entry as one that is stale since then; nil if there is no room for it.
    private func makeStaleCopy(_ entry: MemoryEntry, since: Instant, _ number: UInt64)
        -> MemoryEntry?
    {
        var facts = entry.metadata
        facts.freshUntil = since
        let form = copy(of: entry, facts: facts)
        form?.checkedGeneration.store(number, ordering: .relaxed)
        return form
    }

    /// The same answer as an entry that can be inserted, which no entry can twice; nil if there is
    /// no room for it.
    package func copy(of entry: MemoryEntry) -> MemoryEntry? {
        copy(of: entry, facts: entry.metadata)
    }

    private func copy(of entry: MemoryEntry, facts: EntryMetadata) -> MemoryEntry? {
        guard reserve(entry.overheadBytes) else { return nil }
        return MemoryEntry(
            key: entry.key, hash: entry.hash, name: entry.name, metadata: facts,
            head: entry.head, layout: entry.layout, tags: entry.tags,
            version: entry.version, body: entry.body, account: account, share: entry.share)
    }
}

/// How many entries in memory have a name, in their keys or their tags, by its fingerprint.
///
/// A name is counted before its entry can be found, and until after that.
final class FingerprintCounts: Sendable {
    private final class Stripe: Sendable {
        let counts = Mutex<[UInt32: UInt32]>([:])
    }

    private let stripes = (0..<64).map { _ in Stripe() }

    private func stripe(_ name: UInt32) -> Stripe { stripes[Int(name >> 26)] }

    func contains(_ name: UInt32) -> Bool {
        stripe(name).counts.withLock { $0[name] != nil }
    }

    func add(_ entry: MemoryEntry) {
        entry.forEachFingerprint { name in
            stripe(name).counts.withLock { $0[name, default: 0] += 1 }
        }
    }

    func remove(_ entry: MemoryEntry) {
        entry.forEachFingerprint { name in
            stripe(name).counts.withLock { counts in
                let count = counts[name] ?? 0
                counts[name] = count > 1 ? count - 1 : nil
            }
        }
    }
}

extension MemoryEntry {
    /// Tells the fingerprints of its names.
    fileprivate func forEachFingerprint(_ body: (UInt32) -> Void) {
        body(URLName.fingerprint(URLName.name(ofKey: keyAndHead[..<headStart])))
        for tag in tags {
            if let name = URLName.name(inTag: tag) { body(URLName.fingerprint(name)) }
        }
    }
}
