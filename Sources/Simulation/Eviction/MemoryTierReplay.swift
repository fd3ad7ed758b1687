internal import Ground
internal import Tiers

/// A replay of the memory tier's policy, ``MemoryEvictionPolicy`` and ``MemoryAdmission``.
///
/// As in a node, entries are sharded by hash under one limit in bytes.
package struct MemoryTierReplay: EvictionPolicy {
    private let capacityBytes: Int
    private var shards: [MemoryShardReplay]
    private var bytes = 0

    /// Creates an empty memory of `capacityBytes` with `shards` shards.
    package init(capacityBytes: Int, shards: Int) {
        self.capacityBytes = capacityBytes
        self.shards = (0..<shards).map { _ in MemoryShardReplay() }
    }

    /// Returns true for a hit; otherwise admits the object if it passes admission.
    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        if recordHit(key) { return true }
        admit(key, size: size, requiresAdmission: true)
        return false
    }

    /// Records a hit if the object is stored, and returns whether it is.
    mutating func recordHit(_ key: UInt32) -> Bool {
        let hash = hash(ofKey: key)
        return shards[MemoryEvictionPolicy.shard(of: hash, among: shards.count)].recordHit(
            key, hash)
    }

    /// Admits an object that is not stored, if it fits.
    ///
    /// With `requiresAdmission` a large object is admitted only if it is worth more than what it
    /// would evict.
    mutating func admit(_ key: UInt32, size: Int, requiresAdmission: Bool) {
        guard size <= capacityBytes else { return }
        let hash = hash(ofKey: key)
        let home = shards[MemoryEvictionPolicy.shard(of: hash, among: shards.count)]
        var worth = UInt64.max
        if requiresAdmission, MemoryAdmission.isSubjectToAdmission(size, limitBytes: capacityBytes)
        {
            worth = home.gain(hash, UInt32(size))
        }
        while bytes + size > capacityBytes {
            let giver = MemoryAdmission.evictingShard(among: shards.count, bytes: bytes) {
                (shards[$0].bytes, shards[$0].inflation)
            }
            guard let giver, let freed = shards[giver].evict(worth: worth) else {
                return home.refused(hash)
            }
            bytes -= freed
        }
        home.admit(key, hash, UInt32(size))
        bytes += size
    }
}

/// One shard, with the keys that the store would hold.
private final class MemoryShardReplay {
    private var tier = MemoryEvictionPolicy(expectedEntries: 1024)
    private var keys: [UInt32] = []

    var bytes: Int { Int(tier.bytes) }
    var inflation: UInt64 { tier.inflation }

    /// Returns the value of an entry of `cost` bytes, to compare with that of a victim.
    func gain(_ hash: UInt64, _ cost: UInt32) -> UInt64 { tier.gain(hash: hash, cost: cost) }

    /// Records that an entry was not admitted.
    func refused(_ hash: UInt64) { tier.recordRejection(hash: hash) }

    /// Records a hit if the key is stored, and returns whether it is.
    func recordHit(_ key: UInt32, _ hash: UInt64) -> Bool {
        var candidate = tier.first(hash)
        while let found = candidate {
            if keys[Int(found.id.index)] == key {
                tier.recordHit(found.id)
                return true
            }
            candidate = tier.next(after: found)
        }
        return false
    }

    /// Stores an entry of `cost` bytes.
    func admit(_ key: UInt32, _ hash: UInt64, _ cost: UInt32) {
        let id = tier.admit(hash: hash, cost: cost)
        while keys.count <= Int(id.index) { keys.append(0) }
        keys[Int(id.index)] = key
    }

    /// Evicts the next victim and returns its cost in bytes; `nil` if all entries are worth more.
    func evict(worth: UInt64) -> Int? {
        guard let victim = tier.nextVictim(for: worth) else { return nil }
        tier.evict(victim)
        return Int(victim.cost)
    }
}
