internal import Tiers

/// A cache that only keeps the books: it is told of each request and says whether it was a hit.
///
/// A miss is admitted at once; an object larger than the whole cache never is.
package protocol EvictionPolicy: ~Copyable {
    /// True for a hit. `size` in bytes is the same in every call for one `key`.
    mutating func request(_ key: UInt32, size: Int) -> Bool
}

/// The policies that can be replayed beside each other.
package enum EvictionKind: String, CaseIterable, Sendable {
    case fifo, lru
    /// S3-FIFO as its paper gives it.
    case s3fifo
    /// ``MemoryEvictionPolicy`` and ``MemoryAdmission``, in as many shards as asked for.
    case nuthatch
    /// ``SegmentAllocator`` and ``ReclaimPolicy``, in segments as ``DiskPlan`` cuts them, or in as
    /// many as asked for.
    case nuthatchDisk = "nuthatch-disk"
    /// The disk with a memory of a tenth of its capacity, on top of it, in front.
    case nuthatchBoth = "nuthatch-both"

    /// True if it keeps a log of segments.
    package var isSegmented: Bool { self == .nuthatchDisk || self == .nuthatchBoth }
}

/// Misses of one policy on one trace; the first request of a key counts.
package struct ReplayStatistics: Hashable, Sendable {
    package var requests = 0
    package var misses = 0
    package var requestedBytes = 0
    package var missedBytes = 0
    /// Of two tiers, misses of the first.
    package var memoryMisses = 0
    /// Bytes of what a log took in; 0 without one.
    package var admittedBytes = 0
    /// Bytes that a log wrote, re-inserted ones too.
    package var writtenBytes = 0

    /// Misses per request, 0…1.
    package var objectMissRatio: Double { Double(misses) / Double(max(requests, 1)) }
    /// Bytes missed per byte requested, 0…1.
    package var byteMissRatio: Double { Double(missedBytes) / Double(max(requestedBytes, 1)) }
    /// Bytes written per byte admitted, 1 or more.
    package var writeAmplification: Double {
        Double(writtenBytes) / Double(max(admittedBytes, 1))
    }
}

extension EvictionTrace {
    /// Replays the trace through a cache of `capacityBytes` that stores no object larger than
    /// `objectBytesMax`.
    ///
    /// `shards` is heeded by `.nuthatch` and `.nuthatchBoth` only, `segments` by those with a log:
    /// the least number that it is cut into, nil to cut it as a node does.
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

/// LRU, or FIFO if hits do not promote: the yardsticks.
///
/// Keys are 0..<`keys`.
package struct LRUEvictionPolicy: EvictionPolicy {
    private let capacityBytes: Int
    private let promotes: Bool
    private var bytes = 0
    private var sizes: [Int]
    /// Neighbours in a ring through `root`; a key which is not cached is its own neighbour.
    private var newer: [Int]
    private var older: [Int]
    private let root: Int

    package init(capacityBytes: Int, keys: Int, promotes: Bool) {
        self.capacityBytes = capacityBytes
        self.promotes = promotes
        sizes = Array(repeating: 0, count: keys)
        newer = Array(0...keys)
        older = newer
        root = keys
    }

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

    private mutating func push(_ key: Int) {
        let newest = older[root]
        newer[newest] = key
        older[key] = newest
        newer[key] = root
        older[root] = key
    }

    private mutating func unlink(_ key: Int) {
        newer[older[key]] = newer[key]
        older[newer[key]] = older[key]
        newer[key] = key
        older[key] = key
    }
}
