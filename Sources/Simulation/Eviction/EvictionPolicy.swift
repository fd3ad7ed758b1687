internal import Ground
internal import Tiers

/// A cache without data: it counts each request as a hit or a miss.
///
/// A miss is admitted at once if the policy admits it; an object larger than the whole cache never
/// is.
package protocol EvictionPolicy: ~Copyable {
    /// Returns true for a hit.
    ///
    /// - Parameters:
    ///   - key: The requested key.
    ///   - size: The object's size in bytes, the same in every call for one `key`.
    /// - Returns: True if the object was stored; false for a miss.
    mutating func request(_ key: UInt32, size: Int) -> Bool
}

/// Returns the hash by which a replayed tier places a key.
func hash(ofKey key: UInt32) -> UInt64 {
    var dice = SplitMix64(seed: UInt64(key))
    return dice.next()
}

/// The policies that a replay can compare.
package enum EvictionKind: String, CaseIterable, Sendable {
    case fifo, lru
    /// S3-FIFO as published.
    case s3fifo
    /// ``MemoryEvictionPolicy`` and ``MemoryAdmission``, in a given number of shards.
    case nuthatch
    /// ``SegmentAllocator`` and ``ReclaimPolicy``, with segments sized by ``DiskPlan`` or in a
    /// given number.
    case nuthatchDisk = "nuthatch-disk"
    /// The disk, with an additional memory of a tenth of its capacity in front.
    case nuthatchBoth = "nuthatch-both"

    /// True if the policy keeps a log of segments.
    package var isSegmented: Bool { self == .nuthatchDisk || self == .nuthatchBoth }
}

/// The counts of one policy on one trace, including the first request of each key.
package struct ReplayStatistics: Hashable, Sendable {
    /// The number of requests.
    package var requests = 0
    /// The number of misses.
    package var misses = 0
    /// The sum of all requested sizes in bytes.
    package var requestedBytes = 0
    /// The sum of all missed sizes in bytes.
    package var missedBytes = 0
    /// The number of misses of the memory tier, if there are two tiers.
    package var memoryMisses = 0
    /// The bytes of new objects that a log admitted; 0 without a log.
    package var admittedBytes = 0
    /// The bytes that a log wrote, including re-inserted records.
    package var writtenBytes = 0

    /// Misses per request, from 0 to 1.
    package var objectMissRatio: Double { Double(misses) / Double(max(requests, 1)) }
    /// Missed bytes per requested byte, from 0 to 1.
    package var byteMissRatio: Double { Double(missedBytes) / Double(max(requestedBytes, 1)) }
    /// Written bytes per admitted byte, at least 1; 0 without a log.
    package var writeAmplification: Double {
        Double(writtenBytes) / Double(max(admittedBytes, 1))
    }
}

extension EvictionTrace {
    /// Replays the trace through a policy.
    ///
    /// - Parameters:
    ///   - kind: The policy.
    ///   - capacityBytes: The cache's capacity in bytes.
    ///   - objectBytesMax: The size above which no object is stored.
    ///   - shards: The number of memory shards, for `.nuthatch` and `.nuthatchBoth` only.
    ///   - segments: The minimum number of segments, for policies with a log; `nil` for a node's
    ///     own choice.
    /// - Returns: The counts of requests and misses, and the bytes written by a log.
    package func replay(
        _ kind: EvictionKind, capacityBytes: Int, objectBytesMax: Int = .max, shards: Int = 1,
        segments: Int? = nil
    ) -> ReplayStatistics {
        let keys = sizes.count
        func disk() -> DiskTierReplay {
            DiskTierReplay(
                capacityBytes: capacityBytes, keys: keys,
                segmentBytes: segments.map { max(1, capacityBytes / $0) }
                    ?? DiskPlan.segmentBytes(
                        limitBytes: UInt64(capacityBytes),
                        recordBytesMax: UInt64(min(objectBytesMax, sizes.max() ?? 0)),
                        least: 1, unit: 1))
        }
        switch kind {
        case .fifo:
            var policy = LRUEvictionPolicy(
                capacityBytes: capacityBytes, keys: keys, promotes: false)
            return replay(through: &policy, objectBytesMax)
        case .lru:
            var policy = LRUEvictionPolicy(capacityBytes: capacityBytes, keys: keys, promotes: true)
            return replay(through: &policy, objectBytesMax)
        case .s3fifo:
            var policy = S3FIFOEvictionPolicy(capacityBytes: capacityBytes, keys: keys)
            return replay(through: &policy, objectBytesMax)
        case .nuthatch:
            var policy = MemoryTierReplay(capacityBytes: capacityBytes, shards: shards)
            return replay(through: &policy, objectBytesMax)
        case .nuthatchDisk:
            var policy = disk()
            var figures = replay(through: &policy, objectBytesMax)
            figures.admittedBytes = policy.admittedBytes
            figures.writtenBytes = policy.writtenBytes
            return figures
        case .nuthatchBoth:
            var policy = TieredReplay(
                memory: MemoryTierReplay(capacityBytes: capacityBytes / 10, shards: shards),
                disk: disk())
            var figures = replay(through: &policy, objectBytesMax)
            figures.admittedBytes = policy.disk.admittedBytes
            figures.writtenBytes = policy.disk.writtenBytes
            figures.memoryMisses = policy.memoryMisses
            return figures
        }
    }

    /// Counts the hits and misses of a policy; an object above `objectBytesMax` is a miss that it
    /// never sees.
    private func replay(
        through policy: inout some EvictionPolicy & ~Copyable, _ objectBytesMax: Int
    ) -> ReplayStatistics {
        var figures = ReplayStatistics()
        for key in requests {
            let size = sizes[Int(key)]
            figures.requests += 1
            figures.requestedBytes += size
            if size <= objectBytesMax, policy.request(key, size: size) { continue }
            figures.misses += 1
            figures.missedBytes += size
        }
        return figures
    }
}

/// LRU, or FIFO if hits do not promote: the baselines.
///
/// Keys are 0..<`keys`.
package struct LRUEvictionPolicy: EvictionPolicy {
    private let capacityBytes: Int
    private let promotes: Bool
    private var bytes = 0
    private var sizes: [Int]
    /// The neighbours in a ring through `root`; a key that is not cached is its own neighbour.
    private var newer: [Int]
    private var older: [Int]
    private let root: Int

    /// Creates an empty cache of `capacityBytes`; `promotes` selects LRU.
    package init(capacityBytes: Int, keys: Int, promotes: Bool) {
        self.capacityBytes = capacityBytes
        self.promotes = promotes
        sizes = Array(repeating: 0, count: keys)
        newer = Array(0...keys)
        older = newer
        root = keys
    }

    /// Returns true for a hit; admits the object otherwise, unless it exceeds the capacity.
    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        let key = Int(key)
        if newer[key] != key {
            guard promotes else { return true }
            unlink(key)
            push(key)
            return true
        }
        guard size <= capacityBytes else { return false }
        while bytes + size > capacityBytes {
            let victim = newer[root]
            unlink(victim)
            bytes -= sizes[victim]
        }
        sizes[key] = size
        bytes += size
        push(key)
        return false
    }

    /// Makes a key the newest in the ring.
    private mutating func push(_ key: Int) {
        let newest = older[root]
        newer[newest] = key
        older[key] = newest
        newer[key] = root
        older[root] = key
    }

    /// Removes a key from the ring.
    private mutating func unlink(_ key: Int) {
        newer[older[key]] = newer[key]
        older[newer[key]] = older[key]
        newer[key] = key
        older[key] = key
    }
}
