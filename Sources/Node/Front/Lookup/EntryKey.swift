import Ground
import Store

/// Where in memory an entry stands: its key, and the key's keyed hash.
struct EntryKey: Sendable {
    let key: [UInt8]
    let hash: UInt64
}

extension MemoryStore {
    /// The keyed hash of a key.
    func hash(of key: [UInt8]) -> UInt64 {
        hash(key.span, 0..<key.count)
    }

    /// What stands under a key, whose keyed hash is `hash`.
    func find(_ key: [UInt8], hash: UInt64) -> MemoryEntry? {
        find(key.span, 0..<key.count, hash: hash)
    }

    /// What stands at `place`.
    func find(_ place: EntryKey) -> MemoryEntry? {
        find(place.key, hash: place.hash)
    }
}
