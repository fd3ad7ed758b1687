internal import Ground
internal import Tiers

/// The memory tier's own policy, in shards by hash under one limit in bytes, as a node runs it.
package struct EvictionShards: EvictionPolicy {
    private let capacityBytes: Int
    private var shards: [EvictionShard]
    private var bytes: UInt64 = 0

    package init(capacityBytes: Int, shards: Int) {
        self.capacityBytes = capacityBytes
        self.shards = (0..<shards).map { _ in EvictionShard() }
    }

    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        var dice = Dice(seed: UInt64(key))
        let hash = dice.next()
        let home = MemoryTier.shard(of: hash, among: shards.count)
        if shards[home].hits(key, hash) { return true }
        guard size <= capacityBytes else { return false }
        while bytes + UInt64(size) > UInt64(capacityBytes) { evict(home) }
        shards[home].admit(key, hash, UInt32(size))
        bytes += UInt64(size)
        return false
    }

    /// The shard whose ``MemoryTier/inflation`` is the least gives up an entry.
    private mutating func evict(_ home: Int) {
        var victim = home
        for other in shards.indices where !shards[other].isEmpty {
            if shards[victim].isEmpty || shards[other].isBehind(shards[victim]) { victim = other }
        }
        bytes -= shards[victim].evict()
    }
}

/// One shard, and the keys that the store would hold beside it.
private final class EvictionShard {
    private var tier = MemoryTier(expectedEntries: 1024)
    private var keys: [UInt32] = []

    var isEmpty: Bool { tier.count == 0 }

    func isBehind(_ other: EvictionShard) -> Bool {
        MemoryTier.isBehind(tier.inflation, other.tier.inflation)
    }

    func hits(_ key: UInt32, _ hash: UInt64) -> Bool {
        var candidate = tier.first(hash)
        while let found = candidate {
            if keys[Int(found.id.index)] == key {
                tier.touched(found.id)
                return true
            }
            candidate = tier.next(after: found)
        }
        return false
    }

    func admit(_ key: UInt32, _ hash: UInt64, _ cost: UInt32) {
        let id = tier.admit(hash: hash, cost: cost)
        while keys.count <= Int(id.index) { keys.append(0) }
        keys[Int(id.index)] = key
    }

    /// The cost of the evicted entry in bytes; 0 if there was none.
    func evict() -> UInt64 {
        UInt64(tier.evict()?.cost ?? 0)
    }
}
