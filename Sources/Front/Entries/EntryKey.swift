import Ground
import Store

/// The key of an entry in memory, with its keyed hash.
struct EntryKey: Sendable {
    let key: [UInt8]
    let hash: UInt64
}

extension MemoryStore {
    /// Returns the keyed hash of a key.
    func hash(of key: [UInt8]) -> UInt64 {
        hash(key.span, 0..<key.count)
    }

    /// Returns the entry under a key with the keyed hash `hash`.
    func find(_ key: [UInt8], hash: UInt64) -> MemoryEntry? {
        find(key.span, 0..<key.count, hash: hash)
    }

    /// Returns the entry under `place`.
    func find(_ place: EntryKey) -> MemoryEntry? {
        find(place.key, hash: place.hash)
    }
}
