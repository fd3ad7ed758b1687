package import Ground
import Synchronization
import Tiers

// Checks of entries against the marks.
extension MemoryStore {
    /// Returns true if no mark was applied that might cover the entry since its last check.
    @inline(__always)
    func isUpToDate(_ entry: MemoryEntry) -> Bool {
        entry.checkedGeneration.load(ordering: .relaxed)
            == marks.generation(isKeyOnly: entry.isKeyOnly)
    }

    /// Applies the marks to an entry in memory; returns it or the stale one inserted in its place,
    /// `nil` if it was removed.
    func applyMarks(_ found: MemoryEntry) -> MemoryEntry? {
        if let form = entryAfterMarks(to: found),
            form === found || insert(form, replacing: found)
        {
            return form
        }
        if remove(found) { evictions.add(.purged) }
        return nil
    }

    /// Applies the marks to the entry for `key`, and to its variants; call it after a mark for its
    /// URL.
    package func applyMarksForKey(_ key: [UInt8]) {
        guard let found = peek(key)?.entry else { return }
        _ = applyMarks(found)
        guard found.metadata.flags.contains(.isVariantIndex) else { return }
        // A variant index is tagged with the keys of its variants.
        for place in found.tags {
            if let variant = peek(place)?.entry { _ = applyMarks(variant) }
        }
    }

    /// Returns the entry after applying the marks: itself, or a stale copy.
    ///
    /// `nil` if it is purged, or if there is no space for the stale copy.
    package func entryAfterMarks(to entry: MemoryEntry) -> MemoryEntry? {
        let number = marks.generation(isKeyOnly: entry.isKeyOnly)
        let (tags, version) = (entry.tags, entry.version)
        switch marks.effect(on: entry.key, tags: tags, version: version) {
        case .purged: return nil
        case .stale:
            let since = marks.staleSince(entry.key, tags: tags, version: version)
            guard entry.metadata.freshUntil <= since else {
                var stale = entry.metadata
                stale.freshUntil = since
                let copy = copy(of: entry, metadata: stale)
                copy?.checkedGeneration.store(number, ordering: .relaxed)
                return copy
            }
        case nil: break
        }
        entry.checkedGeneration.store(number, ordering: .relaxed)
        return entry
    }

    /// Returns a copy of the entry that can be inserted, since no entry can be inserted twice;
    /// `nil` if there is no space for it.
    ///
    /// `metadata` replaces the entry's own, unless it is `nil`.
    package func copy(of entry: MemoryEntry, metadata: EntryMetadata? = nil) -> MemoryEntry? {
        guard reserve(entry.overheadBytes) else { return nil }
        return MemoryEntry(
            key: entry.key, hash: entry.hash, name: entry.name,
            metadata: metadata ?? entry.metadata,
            head: entry.head, layout: entry.layout, tags: entry.tags,
            version: entry.version, body: entry.body, account: account, share: entry.share)
    }
}

/// Numbers of entries in memory by the fingerprints of the names in their keys and tags;
/// thread-safe.
///
/// A name is counted from before its entry can be found until after it is removed.
final class FingerprintCounts: Sendable {
    private final class Stripe: Sendable {
        let counts = Mutex<[UInt32: UInt32]>([:])
    }

    private let stripes = (0..<64).map { _ in Stripe() }

    private func stripe(_ name: UInt32) -> Stripe { stripes[Int(name >> 26)] }

    /// Returns true if an entry in memory has a name with this fingerprint.
    func contains(_ name: UInt32) -> Bool {
        stripe(name).counts.withLock { $0[name] != nil }
    }

    /// Counts the names of an entry, before it can be found.
    func add(_ entry: MemoryEntry) {
        entry.forEachFingerprint { name in
            stripe(name).counts.withLock { $0[name, default: 0] += 1 }
        }
    }

    /// Subtracts the names of an entry that was removed.
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
    /// Calls `body` with the fingerprint of each name of the entry.
    fileprivate func forEachFingerprint(_ body: (UInt32) -> Void) {
        body(URLName.fingerprint(URLName.name(ofKey: keyAndHead[..<headStart])))
        for tag in tags {
            if let name = URLName.name(inTag: tag) { body(URLName.fingerprint(name)) }
        }
    }
}
